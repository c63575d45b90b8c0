/* Blocking calls: on the caller's thread, at once when nothing is under way that they would have to
 * follow, else as a started call that is waited for. And how a closed communicator gets rid of
 * them.
 *
 * Layer: comm. Memory: the caller's stack. Thread: the caller's.
 */
#include "comm/internal.h"

#include "comm/lane.h"
#include "comm/quick.h"
#include "comm/types.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static int run_here(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct waiter waiter = {0};
    int rc;
    while ((rc = task->step(comm, task, err)) == 0) {
        rc = task->moved ? wait_moved(&waiter, comm, task, err)
                         : wait_turn(&waiter, comm, task, err);
        task->moved = false;
        rc = rc < 0 ? lane_last_step(comm, task, rc) : 0;
        if (rc != 0) {
            break;
        }
    }
    wait_end(&waiter, comm);
    return rc;
}

int progress_run(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    atomic_store_explicit(&comm->in_call, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* with the membarrier of progress_drain */
    int rc = MUSTER_EABORTED;
    if (atomic_load_explicit(&comm->closed, memory_order_relaxed) == 0) {
        rc = run_here(comm, task, err);
        lane_note_end(comm, task, rc);
    } else {
        muster_fail(err, rc, "this communicator was closed");
    }
    atomic_store_explicit(&comm->in_call, 0, memory_order_release);
    return rc < 0 ? rc : 0;
}

void progress_drain(struct muster_comm *comm)
{
    /* Orders our store of `closed` against the plain store of `in_call` on the thread that calls.
     */
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) < 0) {
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    }
    while (atomic_load_explicit(&comm->in_call, memory_order_acquire)) {
        wait_ring(comm->control);
        sched_yield();
    }
    for (int l = 0; l < LANES; l++) {
        struct lane *lane = &comm->lanes[l];
        pthread_mutex_lock(&lane->running);
        struct muster_request *request;
        while ((request = lane_first(lane))) {
            lane_finish(comm, lane, request, failure_check(comm, &request->task, &request->err));
        }
        pthread_mutex_unlock(&lane->running);
    }
}

/* Nothing is under way that this call would have to follow. */
static bool is_idle(struct muster_comm *comm, const struct muster_call *call)
{
    if (call->kind == MUSTER_SEND || call->kind == MUSTER_RECV) {
        return atomic_load_explicit(&comm->lanes[LANE_MESSAGES].in_flight, memory_order_acquire) ==
               0;
    }
    return atomic_load_explicit(&comm->lanes[LANE_MAIN].in_flight, memory_order_acquire) == 0 &&
           atomic_load_explicit(&comm->lanes[LANE_SIDE].in_flight, memory_order_acquire) == 0;
}

static int run_queued(struct muster_comm *comm, const struct muster_call *call,
                      struct muster_message *ret, struct muster_err *err)
{
    struct muster_request *request;
    int rc = muster_start(comm, call, &request, err);
    if (rc < 0) {
        return rc;
    }
    rc = muster_request_wait(request, -1, err);
    if (rc == MUSTER_EINTERRUPTED) {
        failure_close(comm, rc);
        progress_drain(comm);
    }
    if (rc == 0 && ret) {
        muster_request_message(request, ret);
    }
    muster_request_free(request);
    return rc;
}

static int run_call(struct muster_comm *comm, const struct muster_call *call,
                    struct muster_message *ret, struct muster_err *err)
{
    if (!is_idle(comm, call)) {
        return run_queued(comm, call, ret, err);
    }
    int rc = quick_learn(comm, call, err);
    if (rc > 0) {
        return comm->known.run(comm, call->in, call->out, err);
    }
    struct task task;
    rc = rc < 0 ? rc : call_prepare(comm, call, &task, err);
    rc = rc < 0 ? rc : progress_run(comm, &task, err);
    if (rc == 0 && ret) {
        *ret = task.transfer.message;
    }
    return rc;
}

int muster_run(struct muster_comm *comm, const struct muster_call *call, struct muster_err *err)
{
    struct muster_call own = types_own_fields(call);
    return run_call(comm, &own, NULL, err);
}

int muster_recv(struct muster_comm *comm, void *out, size_t count, enum muster_type type, int from,
                int tag, struct muster_message *ret, struct muster_err *err)
{
    struct muster_call call = {
        .kind = MUSTER_RECV, .type = type, .peer = from, .tag = tag, .out = out, .count = count};
    return run_call(comm, &call, ret, err);
}
