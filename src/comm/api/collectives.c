/* The blocking functions of muster/comm.h. Each describes its call as data. The call runs on the
 * caller's thread: at once if no call is under way that it has to follow, and otherwise as a
 * started call that is waited for.
 *
 * Layer: comm. Memory: the caller's stack. Thread: the caller's.
 */
#include "comm/api/call.h"
#include "comm/api/plan_cache.h"
#include "comm/api/prepare.h"
#include "comm/health/failure.h"
#include "comm/progress/progress.h"
#include "comm/system/sized.h"

#include <stddef.h>

/* Whether no call is under way that this call would have to follow. */
static bool is_idle(struct muster_comm *comm, const struct muster_call *call)
{
    if (call->kind == MUSTER_SEND || call->kind == MUSTER_RECV) {
        return lane_is_empty(&comm->lanes[LANE_MESSAGES]);
    }
    return lane_is_empty(&comm->lanes[LANE_MAIN]) && lane_is_empty(&comm->lanes[LANE_SIDE]);
}

static int run_queued(struct muster_comm *comm, const struct muster_call *call,
                      struct muster_message *ret, struct muster_err *err)
{
    struct muster_request *request;
    int r = muster_start(comm, call, &request, err);
    if (r < 0) {
        return r;
    }
    r = muster_request_wait(request, -1, err);
    if (r == MUSTER_EINTERRUPTED) {
        failure_close(comm, r);
        progress_drain(comm);
    }
    if (r == 0 && ret) {
        r = muster_request_message(request, ret, err);
    }
    muster_request_free(request);
    return r;
}

static int run_call(struct muster_comm *comm, const struct muster_call *call,
                    struct muster_message *ret, struct muster_err *err)
{
    if (!is_idle(comm, call)) {
        return run_queued(comm, call, ret, err);
    }
    struct task task;
    int r = prepare_call(comm, call, &task.call, err);
    if (r < 0) {
        return r;
    }
    if (task.call.kind == MUSTER_ALL_REDUCE && plan_learn(comm, &task.call)) {
        return way_plan(comm)->run(comm, call->in, call->out, err);
    }
    call_begin(comm, &task);
    r = progress_run(comm, &task, err);
    if (r == 0 && ret) {
        sized_write(&sized_message, ret, &task.transfer.message);
    }
    return r;
}

/* Runs a call of the functions below, which set only the fields that their kind needs. */
static int run(struct muster_comm *comm, const struct muster_call *call, struct muster_err *err)
{
    int r = sized_check_err(err);
    return r < 0 ? r : run_call(comm, call, NULL, err);
}

static int run_ours(struct muster_comm *comm, const struct muster_call *call,
                    struct muster_err *err)
{
    if (call->kind == MUSTER_ALL_REDUCE &&
        plan_fits(comm, call->in, call->out, call->count, call->type, call->op)) {
        return way_plan(comm)->run(comm, call->in, call->out, err);
    }
    return run_call(comm, call, NULL, err);
}

static __attribute__((noinline)) int
run_theirs(struct muster_comm *comm, const struct muster_call *call, struct muster_err *err)
{
    struct muster_call own = MUSTER_CALL_INIT;
    int r = sized_read(&sized_call, &own, call, err);
    return r < 0 ? r : run_ours(comm, &own, err);
}

int muster_run(struct muster_comm *comm, const struct muster_call *call, struct muster_err *err)
{
    int r = sized_check_err(err);
    if (r < 0) {
        return r;
    }
    return sized_is_ours(&sized_call, call) ? run_ours(comm, call, err)
                                            : run_theirs(comm, call, err);
}

static __attribute__((noinline)) int all_reduce(struct muster_comm *comm, const void *in, void *out,
                                                size_t count, enum muster_type type,
                                                enum muster_op op, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_ALL_REDUCE,
                               .type = type,
                               .op = op,
                               .in = in,
                               .out = out,
                               .count = count};
    return run(comm, &call, err);
}

int muster_all_reduce(struct muster_comm *comm, const void *in, void *out, size_t count,
                      enum muster_type type, enum muster_op op, struct muster_err *err)
{
    if (plan_fits(comm, in, out, count, type, op)) {
        return way_plan(comm)->run(comm, in, out, err);
    }
    return all_reduce(comm, in, out, count, type, op, err);
}

int muster_reduce(struct muster_comm *comm, const void *in, void *out, size_t count,
                  enum muster_type type, enum muster_op op, int root, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_REDUCE,
                               .type = type,
                               .op = op,
                               .peer = root,
                               .in = in,
                               .out = out,
                               .count = count};
    return run(comm, &call, err);
}

int muster_reduce_scatter(struct muster_comm *comm, const void *in, void *out, size_t count,
                          enum muster_type type, enum muster_op op, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_REDUCE_SCATTER,
                               .type = type,
                               .op = op,
                               .in = in,
                               .out = out,
                               .count = count};
    return run(comm, &call, err);
}

int muster_all_gather(struct muster_comm *comm, const void *in, void *out, size_t count,
                      enum muster_type type, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_ALL_GATHER,
                               .type = type,
                               .in = in,
                               .out = out,
                               .count = count};
    return run(comm, &call, err);
}

int muster_all_gatherv(struct muster_comm *comm, const void *in, void *out, const size_t *counts,
                       enum muster_type type, struct muster_err *err)
{
    if (!counts) {
        return muster_fail(err, MUSTER_EINVAL, "all_gatherv: counts is NULL");
    }
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_ALL_GATHER,
                               .type = type,
                               .in = in,
                               .out = out,
                               .out_counts = counts};
    return run(comm, &call, err);
}

int muster_broadcast(struct muster_comm *comm, void *buffer, size_t count, enum muster_type type,
                     int root, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_BROADCAST,
                               .type = type,
                               .peer = root,
                               .out = buffer,
                               .count = count};
    return run(comm, &call, err);
}

int muster_gather(struct muster_comm *comm, const void *in, void *out, size_t count,
                  enum muster_type type, int root, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_GATHER,
                               .type = type,
                               .peer = root,
                               .in = in,
                               .out = out,
                               .count = count};
    return run(comm, &call, err);
}

int muster_scatter(struct muster_comm *comm, const void *in, void *out, size_t count,
                   enum muster_type type, int root, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_SCATTER,
                               .type = type,
                               .peer = root,
                               .in = in,
                               .out = out,
                               .count = count};
    return run(comm, &call, err);
}

int muster_all_to_all(struct muster_comm *comm, const void *in, void *out, size_t count,
                      enum muster_type type, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_ALL_TO_ALL,
                               .type = type,
                               .in = in,
                               .out = out,
                               .count = count};
    return run(comm, &call, err);
}

int muster_all_to_allv(struct muster_comm *comm, const void *in, const size_t *in_counts, void *out,
                       const size_t *out_counts, enum muster_type type, struct muster_err *err)
{
    if (!in_counts || !out_counts) {
        return muster_fail(err, MUSTER_EINVAL, "all_to_allv: in_counts or out_counts is NULL");
    }
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_ALL_TO_ALL,
                               .type = type,
                               .in = in,
                               .out = out,
                               .in_counts = in_counts,
                               .out_counts = out_counts};
    return run(comm, &call, err);
}

int muster_barrier(struct muster_comm *comm, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call), .kind = MUSTER_BARRIER};
    return run(comm, &call, err);
}

int muster_send(struct muster_comm *comm, const void *in, size_t count, enum muster_type type,
                int to, int tag, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_SEND,
                               .type = type,
                               .peer = to,
                               .tag = tag,
                               .in = in,
                               .count = count};
    return run(comm, &call, err);
}

int muster_recv(struct muster_comm *comm, void *out, size_t count, enum muster_type type, int from,
                int tag, struct muster_message *ret, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_RECV,
                               .type = type,
                               .peer = from,
                               .tag = tag,
                               .out = out,
                               .count = count};
    int r = sized_check_err(err);
    r = r == 0 && ret ? sized_check(&sized_message, ret, err) : r;
    return r < 0 ? r : run_call(comm, &call, ret, err);
}
