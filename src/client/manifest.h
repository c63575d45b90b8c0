/* Exchanges the manifests, which every member shows the others before anything is summed (rule 1 of
 * docs/step-commit.md). The records follow from the version and the plan.
 *
 * Layer: worker (part of libmuster). Thread: the user's, without the job's mutex.
 */
#pragma once

#include "client/worker.h"

/* Exchanges the manifests of all members. sum: the number of sums of the step, with this one
 * (sum.h); 0: this is the step's commit. Returns 0 or the communicator's error; MUSTER_EMISMATCH:
 * another member differs. */
int manifest_exchange(struct muster_elastic *job, struct muster_comm *comm, uint64_t version,
                      uint64_t sum, struct muster_err *ret);
