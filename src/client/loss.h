/* Interprets a failure of the data plane: either a worker is lost, or the user must be told.
 *
 * Layer: worker (part of libmuster). Thread: the user's; the job's mutex is held.
 */
#pragma once

#include "client/worker.h"

/* Handles the failure of a call on the communicator of the generation that was formed last, or of
 * forming it. Returns 0 if the generation is closed and another one will come; otherwise an error
 * for the user. */
int loss_take(struct muster_elastic *job, int code, const struct muster_err *failure,
              struct muster_err *err);
