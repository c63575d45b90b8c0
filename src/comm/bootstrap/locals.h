/* The ranks of one host while a communicator forms; they share the segment. Layer: comm. Memory:
 * the communicator's. Thread: the caller's.
 */
#pragma once

#include "comm/bootstrap/forming.h"

/* The lowest rank creates the segment and hands it to the others, which connect. The lowest also
 * takes over what has come meanwhile from other hosts. */
int locals_join(struct forming *f, struct muster_err *err);

/* From here on others can see this rank die. Waits for all ranks of this host. */
int locals_come_alive(struct forming *f, struct muster_err *err);
