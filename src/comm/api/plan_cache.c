/* Which calls the fast paths take (fast_path.h), and by which of them. Layer: comm. */
#include "comm/api/plan_cache.h"

#include "comm/algorithm/pairwise.h"
#include "comm/algorithm/small.h"
#include "comm/algorithm/zero_copy.h"
#include "comm/api/call.h"
#include "comm/state/call_log.h"

int plan_learn(struct muster_comm *comm, const struct muster_call *call, struct muster_err *err)
{
    if (call->kind != MUSTER_ALL_REDUCE || !comm->all_local || comm->size == 1 ||
        comm->fenced) { /* the fast paths have no fence */
        return 0;
    }
    int rc = call_check(comm, call, err);
    size_t bytes = call->count * muster_type_bytes(call->type);
    if (rc < 0 || bytes == 0) {
        return rc;
    }
    struct schedule_choice choice = call_choose(comm, bytes, comm->live_allocations > 0);
    if (choice.algorithm == SCHEDULE_OWNER_REDUCE) {
        return 0;
    }
    struct plan plan = {.type = call->type, .op = call->op, .count = call->count};
    uint64_t count;
    call_log_common(comm, call, &plan.shape, &count);
    plan.bytes = bytes;
    plan.digest = call_log_digest(comm->generation, plan.shape, count);
    plan.fold = reduce_find(call->type, call->op);
    plan.divisor = call->op == MUSTER_AVG ? comm->size : 1;
    if (choice.algorithm == SCHEDULE_ZERO_COPY) {
        zero_copy_prepare(comm, call, call_go_private, &plan.zero_copy);
        plan.run = zero_copy_run;
    } else if (choice.algorithm == SCHEDULE_PAIRWISE) {
        pairwise_prepare(comm, call, choice.block_bytes, &plan.pairwise);
        plan.run = pairwise_run;
    } else {
        plan.run = small_run;
    }
    *way_plan(comm) = plan;
    return 1;
}
