/* Exchanges what every member shows the others before anything is summed (rule 1 of
 * docs/step-commit.md). The records follow from the version and the plan.
 *
 * Layer: worker (part of libmuster). Thread: the user's, without the job's mutex.
 */
#pragma once

#include "client/worker.h"

/* sum: how many sums of the step there will have been (sum.h); 0: it is the step's commit. 0, or as
 * the communicator has it; MUSTER_EMISMATCH: another member brings something else. */
int manifest_exchange(struct muster_elastic *job, struct muster_comm *comm, uint64_t version,
                      uint64_t sum, struct muster_err *ret);
