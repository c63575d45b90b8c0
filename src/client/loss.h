/* Interprets a failure of the data plane: either a worker is lost, or the user must be told.
 *
 * Layer: worker (part of libmuster). Thread: the user's; the job's mutex is held.
 */
#pragma once

#include "client/worker.h"

/* A call on the communicator of the generation that was formed last has failed, or forming it. 0:
 * the generation is closed, another one comes; else the user's error. */
int loss_take(struct muster_elastic *job, int code, const struct muster_err *failure,
              struct muster_err *err);
