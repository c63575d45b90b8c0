/* Shows the worker's state (model, optimizer) to others, reads it from others, and restores it.
 *
 * Layer: worker (part of libmuster). Memory: the pieces are the user's. Thread: the user's; the
 * job's mutex is held, and let go while something is waited for.
 */
#pragma once

#include "client/worker.h"

/* Reads the state of core.version from the members that have it. 0: it is there, or the generation
 * is closed; negative: the user's error. */
int state_load(struct muster_elastic *job, struct muster_err *err);

/* The same for a worker whose state is another one than that of most members: from those. */
int state_heal(struct muster_elastic *job, struct muster_err *err);

/* Restores the state of core.version from a checkpoint, or the model as it was at first, from the
 * first worker that still has it. Returns what state_load does. */
int state_restore(struct muster_elastic *job, struct muster_err *err);
