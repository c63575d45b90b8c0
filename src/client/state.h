/* The worker's state (model, optimizer): shown to others, read from others, restored.
 *
 * Layer: worker (part of libmuster). Memory: the pieces are the user's. Thread: the user's; the
 * job's mutex is held, and let go while something is waited for.
 */
#pragma once

#include "client/worker.h"

/* The state of core.version, from the members that have it. 0: it is there, or the generation is
 * closed; negative: the user's error. */
int state_load(struct muster_elastic *job, struct muster_err *err);

/* The same of a worker that has a state, but another one than most: from those. */
int state_heal(struct muster_elastic *job, struct muster_err *err);

/* That of core.version from a checkpoint, or the model as it was at first: of the first worker that
 * still has it so. As state_load. */
int state_restore(struct muster_elastic *job, struct muster_err *err);
