/* The ranks of one host while a communicator forms; they share the segment. Layer: comm. Memory:
 * the communicator's. Thread: the caller's.
 */
#pragma once

#include "comm/bootstrap/forming.h"

/* Joins the segment of this host: the lowest rank creates it and hands it to the others, which
 * connect. The lowest rank also takes over connections from other hosts that arrive meanwhile. */
int locals_join(struct forming *f, struct muster_err *err);

/* Shows that this rank is alive: from now on others can see it die. Waits for all ranks of this
 * host. */
int locals_come_alive(struct forming *f, struct muster_err *err);
