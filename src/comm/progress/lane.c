/* Steps the requests of a lane. Only the thread that holds the lane does this; the first that
 * comes gets it. The end of each call is recorded here, whichever thread ran it.
 *
 * Layer: comm. Memory: requests (request.h). Thread: any; the lane says who holds it.
 */
#include "comm/progress/lane.h"

#include "comm/health/failure.h"
#include "comm/messages/message.h"
#include "comm/progress/request.h"
#include "comm/progress/wait.h"
#include "comm/state/bell.h"
#include "comm/state/call_log.h"
#include "comm/state/types.h"

#include <assert.h>
#include <stddef.h>

/* Only the holder of the lane takes requests out; they are appended at any time, by one thread at a
 * time. */
struct muster_request *lane_first(struct lane *lane)
{
    return atomic_load_explicit(&lane->first, memory_order_acquire);
}

static struct muster_request *after(const struct muster_request *request)
{
    return atomic_load_explicit(&request->next, memory_order_acquire);
}

static struct muster_request *request_of(struct task *task)
{
    return (struct muster_request *)(void *)((char *)task - offsetof(struct muster_request, task));
}

/* The caller holds the lane or its queue; a thread that takes out the last request holds both. */
static void append(struct lane *lane, struct muster_request *request)
{
    assert(!request->next && request_is_pending(request));
    struct muster_request *last = atomic_load_explicit(&lane->last, memory_order_relaxed);
    request->before = last;
    atomic_store_explicit(last ? &last->next : &lane->first, request, memory_order_release);
    atomic_store_explicit(&lane->last, request, memory_order_release);
    atomic_fetch_add(&lane->appended, 1); /* before it is checked whether the progress thread is
                                             active */
}

void lane_append(struct lane *lane, struct muster_request *request)
{
    pthread_mutex_lock(&lane->queue);
    append(lane, request);
    pthread_mutex_unlock(&lane->queue);
}

static void unlink_request(struct lane *lane, struct muster_request *request,
                           struct muster_request *next)
{
    struct muster_request *before = request->before;
    assert((before ? after(before) : lane_first(lane)) == request && "it is in its lane");
    atomic_store_explicit(before ? &before->next : &lane->first, next, memory_order_release);
    if (next) {
        next->before = before;
    } else {
        atomic_store_explicit(&lane->last, before, memory_order_release);
    }
}

/* If another request is behind this one, no other thread changes this one. */
static void take_out(struct lane *lane, struct muster_request *request)
{
    struct muster_request *next = after(request);
    if (next) {
        unlink_request(lane, request, next);
    } else {
        pthread_mutex_lock(&lane->queue);
        unlink_request(lane, request, after(request));
        pthread_mutex_unlock(&lane->queue);
    }
    unsigned ended = atomic_load_explicit(&lane->ended, memory_order_relaxed) + 1;
    assert(lane_count(lane) > 0);
    atomic_store_explicit(&lane->ended, ended, memory_order_release);
}

void lane_note_failure(struct muster_comm *comm, const struct task *task, int r)
{
    assert(r < 0 && "it failed");
    bool usable = r == MUSTER_ETOOBIG && task->call.kind == MUSTER_RECV;
    if (!usable) {
        if (task->begun && types_is_in_place(&task->call, comm->rank, comm->size)) {
            atomic_store(&comm->input_touched, true);
        }
        failure_close(comm, r);
    }
}

/* Called by the holder of the lane. */
void lane_finish(struct muster_comm *comm, struct lane *lane, struct muster_request *request, int r)
{
    assert(request_is_pending(request) && "it ends once");
    assert(request->comm == comm && request->task.lane == lane->index);
    lane_note_end(comm, &request->task, r);
    take_out(lane, request);
    request_end(request, r > 0 ? REQUEST_DONE : r);
    bell_wake(comm->control);
}

/* Called when the peer that the task waits for is gone: what it had sent before still counts, so
 * the task makes one more step. Returns 0 if the task waits for another rank after it. */
int lane_last_step(struct muster_comm *comm, struct task *task, int failure)
{
    assert(failure <= 0);
    bool peers = failure == MUSTER_EPEERDEAD || failure == MUSTER_EABORTED;
    if (!peers || phase_code(&comm->life) != 0) {
        return failure;
    }
    if (task->lane == LANE_MESSAGES) {
        (void)message_move(comm);
    }
    int r = task->step(comm, task, NULL);
    return r > 0 ? 1 : r == 0 && !failure_is_gone(comm, task) ? 0 : failure;
}

static int step_request(struct muster_comm *comm, struct muster_request *request, bool check)
{
    struct task *task = &request->task;
    if (phase_code(&comm->life) != 0) {
        return failure_check(comm, task, &request->err);
    }
    int r = task->step(comm, task, &request->err);
    if (r == 0 && check) {
        r = wait_check(&request->waiter, comm, task, false, &request->err);
        r = r < 0 ? lane_last_step(comm, task, r) : 0;
    }
    return r;
}

/* Steps the first requests until one must wait. Returns true if one moved or ended. */
static bool step_requests(struct muster_comm *comm, struct lane *lane, bool check)
{
    bool moved = false;
    for (struct muster_request *request; (request = lane_first(lane));) {
        int r = step_request(comm, request, check);
        moved |= r != 0 || request->task.moved;
        request->task.moved = false;
        if (r == 0) {
            break;
        }
        lane_finish(comm, lane, request, r); /* requests that were started meanwhile do not wait */
    }
    return moved;
}

/* ---- messages ---- */

/* Messages take their places in the order in which they were started, so the messages that have a
 * place are the first ones of the lane. */
static void begin_from(struct muster_comm *comm, struct muster_request *r)
{
    while (r->before && !r->before->task.begun) {
        r = r->before;
    }
    for (; r; r = after(r)) {
        message_begin(comm, &r->task);
    }
}

static inline void begin_messages(struct muster_comm *comm, struct lane *lane)
{
    struct muster_request *last = atomic_load_explicit(&lane->last, memory_order_acquire);
    if (last && !last->task.begun) {
        begin_from(comm, last);
    }
}

/* Returns true if any message was finished. */
static bool finish_messages(struct muster_comm *comm, struct lane *lane)
{
    struct task *task;
    bool any = false;
    while (phase_code(&comm->life) == 0 && (task = message_take_ended(comm))) {
        struct muster_request *request = request_of(task);
        int r = task->step(comm, task, &request->err);
        assert(r != 0 && "its message has been sent or received");
        lane_finish(comm, lane, request, r);
        any = true;
    }
    return any;
}

/* Makes the slow checks for each message. A message for a rank that is gone fails, and so do all
 * after it. */
static void check_messages(struct muster_comm *comm, struct lane *lane)
{
    for (struct muster_request *request = lane_first(lane), *next; request; request = next) {
        next = after(request);
        int r = step_request(comm, request, true);
        if (r < 0 && !(request->task.transfer.ended && phase_code(&comm->life) == 0)) {
            lane_finish(comm, lane, request, r);
        }
    }
    (void)finish_messages(comm, lane);
}

static bool step_messages(struct muster_comm *comm, struct lane *lane, bool check)
{
    bool moved = false;
    if (phase_code(&comm->life) == 0) {
        begin_messages(comm, lane);
        moved = message_move(comm);
        moved |= finish_messages(comm, lane);
    }
    if (check || phase_code(&comm->life) != 0) {
        check_messages(comm, lane);
    }
    return moved;
}

bool lane_try(struct muster_comm *comm, struct lane *lane, bool check)
{
    if (lane_is_empty(lane) || !lane_enter(lane)) {
        return false;
    }
    bool moved = lane->index == LANE_MESSAGES ? step_messages(comm, lane, check)
                                              : step_requests(comm, lane, check);
    lane_leave(lane);
    return moved;
}

bool lane_try_all(struct muster_comm *comm, bool check)
{
    bool moved = false;
    for (int l = 0; l < LANES; l++) {
        moved |= lane_try(comm, &comm->lanes[l], check);
    }
    return moved;
}

/* Called by the holder of the lane. */
static void start_message(struct muster_comm *comm, struct lane *lane,
                          struct muster_request *request)
{
    append(lane, request);
    if (phase_code(&comm->life) == 0) {
        begin_messages(comm, lane);
        if (request->task.call.kind == MUSTER_SEND) {
            (void)message_push(comm, request->task.call.peer);
        }
        (void)finish_messages(comm, lane);
    }
}

void lane_start(struct muster_comm *comm, struct muster_request *request, bool steps)
{
    struct lane *lane = &comm->lanes[request->task.lane];
    if (steps && lane->index == LANE_MESSAGES && lane_enter(lane)) {
        start_message(comm, lane, request);
        lane_leave(lane);
        return;
    }
    lane_append(lane, request);
    if (steps && lane->index != LANE_MESSAGES) {
        (void)lane_try(comm, lane, false);
    }
}

bool lane_send_now(struct muster_comm *comm, const struct prepared *call)
{
    struct lane *lane = &comm->lanes[LANE_MESSAGES];
    if (call->bytes > MESSAGE_EAGER_BYTES || !lane_enter(lane)) {
        return false;
    }
    bool sent = false;
    if (phase_code(&comm->life) == 0) {
        begin_messages(comm, lane);
        sent = message_send_ahead(comm, call);
    }
    lane_leave(lane);
    return sent;
}

int lane_in_flight(struct muster_comm *comm)
{
    int sum = 0;
    for (int l = 0; l < LANES; l++) {
        sum += lane_count(&comm->lanes[l]);
    }
    return sum;
}
