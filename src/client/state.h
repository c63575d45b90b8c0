/* Shows the worker's state (model, optimizer) to others, reads it from others, and restores it.
 *
 * Layer: worker (part of libmuster). Memory: the pieces are the user's. Thread: the user's; the
 * job's mutex is held, and let go while something is waited for.
 */
#pragma once

#include "client/worker.h"

/* Reads the state of core.version from the members that have it. Returns 0 if it was read, or the
 * generation is closed; negative: an error for the user. */
int state_load(struct muster_elastic *job, struct muster_err *err);

/* Does the same for a worker whose state differs from that of most members: reads it from those. */
int state_heal(struct muster_elastic *job, struct muster_err *err);

/* Restores the state of core.version from a checkpoint, or the model of the beginning from the
 * first worker that still has it. Returns what state_load does. */
int state_restore(struct muster_elastic *job, struct muster_err *err);
