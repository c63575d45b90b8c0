/* Decides which calls take a fast path (fast_path.h), and which one. Layer: comm. */
#include "comm/api/plan_cache.h"

#include "comm/algorithm/pairwise.h"
#include "comm/algorithm/small.h"
#include "comm/algorithm/zero_copy.h"
#include "comm/api/call.h"
#include "comm/state/call_log.h"

#include <assert.h>

bool plan_learn(struct muster_comm *comm, const struct prepared *call)
{
    assert(call->kind == MUSTER_ALL_REDUCE);
    if (!comm->all_local || comm->size == 1 || call->bytes == 0 ||
        comm->fenced) { /* the fast paths have no fence */
        return false;
    }
    struct schedule_choice choice = call_choose(comm, call->bytes, comm->live_allocations > 0);
    if (choice.algorithm == SCHEDULE_OWNER_REDUCE) {
        return false;
    }
    struct plan *plan = way_plan(comm);
    plan->call = *call;
    plan->digest = call_log_digest(comm->generation, call->shape, call->total);
    if (choice.algorithm == SCHEDULE_ZERO_COPY) {
        zero_copy_prepare(comm, call, call_go_private, &plan->zero_copy);
        plan->run = zero_copy_run;
    } else if (choice.algorithm == SCHEDULE_PAIRWISE) {
        pairwise_prepare(comm, call, choice.block_bytes, &plan->pairwise);
        plan->run = pairwise_run;
    } else {
        plan->run = small_run;
    }
    return true;
}
