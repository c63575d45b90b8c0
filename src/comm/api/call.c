/* From a public call to a task: checked, numbered, signed, its algorithm chosen.
 *
 * Layer: comm. Memory: the caller's task. Thread: the one that starts calls.
 */
#include "comm/api/call.h"

#include "comm/algorithm/exchange.h"
#include "comm/algorithm/hierarchy.h"
#include "comm/algorithm/owner_reduce.h"
#include "comm/algorithm/pairwise.h"
#include "comm/algorithm/zero_copy.h"
#include "comm/health/quiesce.h"
#include "comm/messages/message.h"
#include "comm/state/call_log.h"
#include "comm/state/types.h"

/* Elements of any type that all ranks together may have. */
static const size_t surely_allowed = (size_t)PTRDIFF_MAX / sizeof(double) / COMM_MAX_RANKS;

static int check_room(const struct muster_comm *comm, const struct muster_call *call, size_t unit,
                      struct muster_err *err)
{
    if (call->kind == MUSTER_ALL_TO_ALL && !call->in_counts != !call->out_counts) {
        return muster_fail(err, MUSTER_EINVAL,
                           "all_to_all: of in_counts and out_counts one is NULL");
    }
    if (!call->in_counts && !call->out_counts && call->count <= surely_allowed) {
        return 0; /* two divisions less for a call of some tens of nanoseconds */
    }
    size_t limit = (size_t)PTRDIFF_MAX / unit / (size_t)comm->size;
    size_t in = call->in_counts ? types_total(call->in_counts, comm->size) : call->count;
    size_t out = call->out_counts ? types_total(call->out_counts, comm->size) : call->count;
    if (in > limit || out > limit) {
        return muster_fail(err, MUSTER_EINVAL, "%s of %zu elements is more than memory can hold",
                           types_kind_name(call->kind), in > out ? in : out);
    }
    return 0;
}

static bool needs_in(const struct muster_comm *comm, const struct muster_call *call)
{
    return call->kind != MUSTER_BROADCAST && call->kind != MUSTER_BARRIER &&
           call->kind != MUSTER_RECV && (call->kind != MUSTER_SCATTER || comm->rank == call->peer);
}

static bool needs_out(const struct muster_comm *comm, const struct muster_call *call)
{
    bool rooted = call->kind == MUSTER_REDUCE || call->kind == MUSTER_GATHER;
    return call->kind != MUSTER_BARRIER && call->kind != MUSTER_SEND &&
           (!rooted || comm->rank == call->peer);
}

static int check_buffers(const struct muster_comm *comm, const struct muster_call *call,
                         struct muster_err *err)
{
    size_t in = call->in_counts ? types_total(call->in_counts, comm->size) : call->count;
    size_t out = call->out_counts ? types_total(call->out_counts, comm->size) : call->count;
    if (call->kind == MUSTER_ALL_GATHER && call->out_counts) {
        in = call->out_counts[comm->rank];
    }
    if ((needs_in(comm, call) && in > 0 && !call->in) ||
        (needs_out(comm, call) && out > 0 && !call->out)) {
        return muster_fail(err, MUSTER_EINVAL, "%s: a buffer is NULL", types_kind_name(call->kind));
    }
    return 0;
}

static int check_peer(const struct muster_comm *comm, const struct muster_call *call,
                      struct muster_err *err)
{
    bool any = call->kind == MUSTER_RECV && call->peer == MUSTER_ANY_SOURCE;
    bool named = types_has_peer(call->kind) || call->kind == MUSTER_SEND ||
                 (call->kind == MUSTER_RECV && !any);
    if (named && (call->peer < 0 || call->peer >= comm->size)) {
        return muster_fail(err, MUSTER_EINVAL, "%s: there is no rank %d in a world of %d",
                           types_kind_name(call->kind), call->peer, comm->size);
    }
    bool message = call->kind == MUSTER_SEND || call->kind == MUSTER_RECV;
    bool any_tag = call->kind == MUSTER_RECV && call->tag == MUSTER_ANY_TAG;
    if (message && call->tag < 0 && !any_tag) {
        return muster_fail(err, MUSTER_EINVAL, "%s: tag %d is negative",
                           types_kind_name(call->kind), call->tag);
    }
    return 0;
}

int call_check(const struct muster_comm *comm, const struct muster_call *call,
               struct muster_err *err)
{
    int rc = comm_check_own(comm, err);
    if (rc < 0) {
        return rc;
    }
    int closed = phase_code(&comm->life);
    if (closed) {
        quiesce_wait(comm);
        return muster_fail(err, MUSTER_EABORTED, "this communicator was closed: %s",
                           muster_code_text(closed));
    }
    if (!types_has_kind(call->kind)) {
        return muster_fail(err, MUSTER_EINVAL, "there is no collective %d", (int)call->kind);
    }
    if (call->kind == MUSTER_BARRIER) {
        return 0;
    }
    if (!types_has_type(call->type)) {
        return muster_fail(err, MUSTER_EINVAL, "there is no type %d", (int)call->type);
    }
    if (types_reduces(call->kind) &&
        (!types_has_op(call->op) || !reduce_find(call->type, call->op))) {
        return muster_fail(err, MUSTER_EINVAL, "%s of %s is not defined", muster_op_name(call->op),
                           muster_type_name(call->type));
    }
    rc = check_room(comm, call, muster_type_bytes(call->type), err);
    rc = rc < 0 ? rc : check_peer(comm, call, err);
    return rc < 0 ? rc : check_buffers(comm, call, err);
}

struct schedule_choice call_choose(const struct muster_comm *comm, size_t bytes, bool shared_memory)
{
    struct schedule_world world = {comm->size, comm->all_local, shared_memory, comm->oversubscribed,
                                   comm->intel};
    return schedule_choose(&world, bytes);
}

static void go(struct muster_comm *comm, struct task *task, bool shared_memory)
{
    struct schedule_choice choice = call_choose(comm, task->call.count * task->unit, shared_memory);
    switch (choice.algorithm) {
    case SCHEDULE_GATHER_REDUCE: exchange_start(comm, task, SCHEDULE_ALL_REDUCE); break;
    case SCHEDULE_OWNER_REDUCE: owner_start(comm, task, choice.block_bytes); break;
    case SCHEDULE_PAIRWISE: pairwise_start(comm, task, choice.block_bytes); break;
    case SCHEDULE_ZERO_COPY: zero_copy_start(comm, task, call_go_private); break;
    case SCHEDULE_SCATTER_GATHER: exchange_start(comm, task, SCHEDULE_ALL_REDUCE_SPLIT); break;
    }
}

void call_go_private(struct muster_comm *comm, struct task *task)
{
    go(comm, task, false);
}

/* Only what all ranks know alike may decide here. */
static void choose(struct muster_comm *comm, struct task *task)
{
    static const enum schedule_pattern patterns[] = {
        [MUSTER_ALL_REDUCE] = SCHEDULE_ALL_REDUCE,
        [MUSTER_REDUCE] = SCHEDULE_REDUCE,
        [MUSTER_REDUCE_SCATTER] = SCHEDULE_REDUCE_SCATTER,
        [MUSTER_ALL_GATHER] = SCHEDULE_ALL_GATHER,
        [MUSTER_BROADCAST] = SCHEDULE_BROADCAST,
        [MUSTER_GATHER] = SCHEDULE_GATHER,
        [MUSTER_SCATTER] = SCHEDULE_SCATTER,
        [MUSTER_ALL_TO_ALL] = SCHEDULE_ALL_TO_ALL,
        [MUSTER_BARRIER] = SCHEDULE_BARRIER,
    };
    if (task->lane == LANE_MESSAGES) {
        message_start(task);
    } else if (hierarchy_fits(comm, task)) {
        hierarchy_start(comm, task, patterns[task->call.kind]);
    } else if (task->call.kind == MUSTER_ALL_TO_ALL && task->call.in_counts) {
        exchange_start_uneven(comm, task);
    } else if (task->call.kind == MUSTER_ALL_REDUCE) {
        go(comm, task, comm->live_allocations > 0);
    } else {
        exchange_start(comm, task, patterns[task->call.kind]);
    }
}

static int lane_of(const struct muster_call *call, size_t unit)
{
    if (call->kind == MUSTER_SEND || call->kind == MUSTER_RECV) {
        return LANE_MESSAGES;
    }
    bool small = call->count <= SIDE_BYTES / unit;
    bool overtakes = call->kind == MUSTER_ALL_GATHER && !call->out_counts && small;
    return overtakes ? LANE_SIDE : LANE_MAIN;
}

/* Its place in the order of calls; which way it takes is not chosen yet. */
static void call_number(struct muster_comm *comm, const struct muster_call *call, struct task *ret)
{
    ret->call = *call;
    ret->waiting = call->peer;
    ret->begun = false;
    ret->queued = false;
    ret->moved = false;
    ret->link_rounds = 0;
    ret->linked = NULL;
    ret->unit = call->kind == MUSTER_BARRIER ? 1 : muster_type_bytes(call->type);
    ret->lane = lane_of(call, ret->unit);
    ret->number = 0;
    if (ret->lane != LANE_MESSAGES) {
        ret->number = comm->started + 1;
        atomic_store_explicit(&comm->started, ret->number, memory_order_relaxed);
        uint64_t shape, count;
        call_log_common(comm, call, &shape, &count);
        ret->signature =
            call_log_sign(ret->number, call_log_digest(comm->generation, shape, count));
    }
}

int call_prepare(struct muster_comm *comm, const struct muster_call *call, struct task *ret,
                 struct muster_err *err)
{
    int rc = call_check(comm, call, err);
    if (rc == 0) {
        call_number(comm, call, ret);
        choose(comm, ret);
    }
    return rc;
}
