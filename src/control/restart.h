/* Restarts all ranks of a job together, as torchrun does; see attempt.h.
 *
 * A restart is one write to the job: the number of the attempt goes up, so that every existing pod
 * belongs to an earlier attempt. From then on each step deletes those pods, and none is made again
 * before the last of them is gone. So a step may be lost or repeated at any point, and however
 * many ranks fail at once, the failure counts once.
 *
 * Layer: pure.
 */
#pragma once

#include "control/step.h"

/* Whether a rank of this attempt has failed, and another attempt is allowed. */
bool control_restarts(const struct control_step *step);
/* Whether a rank of the last attempt that is allowed has failed. */
bool control_restarts_are_spent(const struct control_step *step);
/* Whether pods of an earlier attempt exist. */
bool control_awaits_earlier(const struct control_observed *o);

/* Begins the next attempt: sets step->restarts, and adds the event. */
void control_restart(struct control_step *step);

/* Writes "restart 1 of 3: mnist-worker-0 (rank 1) exited with code 1", about the running attempt
 * or, after control_restart, the next. */
void control_restart_say(const struct control_step *step, struct buf *out);
