/* Started calls: muster_start, and waiting for their end.
 *
 * Layer: comm. Memory: request.h. Thread: any.
 */
#include "comm/api/call.h"
#include "comm/api/prepare.h"
#include "comm/health/failure.h"
#include "comm/messages/message.h"
#include "comm/progress/background.h"
#include "comm/progress/lane.h"
#include "comm/progress/progress.h"
#include "comm/progress/request.h"
#include "comm/progress/wait.h"
#include "comm/system/deadline.h"
#include "comm/system/sized.h"

#include <assert.h>
#include <stdlib.h>

enum { INLINE_BYTES = MESSAGE_EAGER_BYTES };

/* Fills in a request, whose call must be prepared. */
static void set_up(struct muster_comm *comm, struct muster_request *request)
{
    request->comm = comm;
    request->before = NULL;
    request->waiter = (struct waiter){0};
    request->err.struct_size = sizeof request->err;
    atomic_init(&request->next, NULL);
    atomic_init(&request->state, REQUEST_PENDING);
    call_begin(comm, &request->task);
    request->task.queued = true;
}

/* Messages have a limit of their own, because a message may end only after another one is started.
 */
static int check_room(struct muster_comm *comm, const struct muster_call *call,
                      struct muster_err *err)
{
    bool message = call->kind == MUSTER_SEND || call->kind == MUSTER_RECV;
    int messages = lane_count(&comm->lanes[LANE_MESSAGES]);
    if (message && messages >= MUSTER_MAX_MESSAGES) {
        return muster_fail(err, MUSTER_EAGAIN, "%d messages are under way: wait for some",
                           MUSTER_MAX_MESSAGES);
    }
    if (!message && lane_in_flight(comm) - messages >= MUSTER_MAX_IN_FLIGHT) {
        return muster_fail(err, MUSTER_EAGAIN, "%d calls are under way: wait for some",
                           MUSTER_MAX_IN_FLIGHT);
    }
    return 0;
}

static void start(struct muster_comm *comm, struct muster_request *request, struct muster_err *err)
{
    const struct prepared *call = &request->task.call;
    set_up(comm, request);
    /* Small calls are sent at once; large ones must not hold up the caller. */
    lane_start(comm, request, call->bytes <= INLINE_BYTES);
    if (request_is_pending(request)) {
        int r = background_add(comm, err);
        if (r < 0) {
            failure_close(comm, r);
            progress_drain(comm);
        }
    }
}

/* Returns 1 if the call was a send and has ended. */
static int send_now(struct muster_comm *comm, const struct muster_call *call,
                    struct muster_err *err)
{
    struct prepared prepared;
    if (call->kind != MUSTER_SEND) {
        return 0;
    }
    int r = prepare_call(comm, call, &prepared, err);
    return r < 0 ? r : lane_send_now(comm, &prepared);
}

static int start_ours(struct muster_comm *comm, const struct muster_call *call,
                      struct muster_request **ret, struct muster_err *err)
{
    int r = check_room(comm, call, err);
    r = r < 0 ? r : send_now(comm, call, err);
    if (r < 0) {
        return r;
    }
    if (r > 0) {
        *ret = request_sent();
        return 0;
    }
    struct muster_request *request = request_alloc();
    if (!request) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a request");
    }
    r = prepare_call(comm, call, &request->task.call, err);
    if (r < 0) {
        request_drop(request);
        return r;
    }
    start(comm, request, err);
    *ret = request;
    return 0;
}

static __attribute__((noinline)) int start_theirs(struct muster_comm *comm,
                                                  const struct muster_call *call,
                                                  struct muster_request **ret,
                                                  struct muster_err *err)
{
    struct muster_call own = MUSTER_CALL_INIT;
    int r = sized_read(&sized_call, &own, call, err);
    return r < 0 ? r : start_ours(comm, &own, ret, err);
}

int muster_start(struct muster_comm *comm, const struct muster_call *call,
                 struct muster_request **ret, struct muster_err *err)
{
    int r = sized_check_err(err);
    if (r < 0) {
        return r;
    }
    return sized_is_ours(&sized_call, call) ? start_ours(comm, call, ret, err)
                                            : start_theirs(comm, call, ret, err);
}

/* Waits, and steps the lanes meanwhile instead of leaving this to the progress thread. */
static int help(struct muster_request *request, int64_t timeout_ms, struct muster_err *err)
{
    struct muster_comm *comm = request->comm;
    struct waiter waiter = {0};
    int64_t end_ns = timeout_ms < 0 ? INT64_MAX : deadline_after_ms(timeout_ms);
    int r = 0;
    atomic_fetch_add(&comm->helpers, 1);
    while (r == 0) {
        bool moved = lane_try_all(comm, wait_is_slow(&waiter, comm));
        if (!request_is_pending(request)) {
            break;
        }
        r = moved ? wait_moved(&waiter, comm, NULL, err) : wait_turn(&waiter, comm, NULL, err);
        if (r == 0 && wait_is_slow(&waiter, comm) && deadline_now_ns() >= end_ns) {
            r = muster_fail(err, MUSTER_ETIMEDOUT, "still under way after %lld ms",
                            (long long)timeout_ms);
        }
    }
    wait_end(&waiter, comm);
    background_helped(comm, r == 0);
    return r;
}

int muster_request_wait(struct muster_request *request, int64_t timeout_ms, struct muster_err *err)
{
    if (request_is_pending(request)) {
        int r = sized_check_err(err);
        r = r < 0 ? r : comm_check_own(request->comm, err);
        r = r < 0 ? r : help(request, timeout_ms, err);
        if (r < 0) {
            return r;
        }
    }
    if (atomic_load_explicit(&request->state, memory_order_relaxed) == REQUEST_DONE) {
        return sized_check_err(err);
    }
    int state = muster_request_test(request, err);
    return state < 0 ? state : 0;
}
