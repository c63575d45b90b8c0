/* Runs a task on the thread that calls, and ends all tasks of a communicator that was closed.
 *
 * Layer: comm. Memory: the caller's stack. Thread: the caller's.
 */
#include "comm/progress/progress.h"

#include "comm/health/failure.h"
#include "comm/messages/message.h"
#include "comm/progress/inside.h"
#include "comm/progress/lane.h"
#include "comm/progress/request.h"
#include "comm/progress/wait.h"
#include "comm/state/bell.h"

#include <assert.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Time between two looks whether another thread still steps a lane. */
enum { DRAIN_LOOK_NS = 20 * 1000 };

static int run_here(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct waiter waiter = {0};
    int r;
    while ((r = task->step(comm, task, err)) == 0) {
        r = task->moved ? wait_moved(&waiter, comm, task, err)
                        : wait_turn(&waiter, comm, task, err);
        task->moved = false;
        r = r < 0 ? lane_last_step(comm, task, r) : 0;
        if (r != 0) {
            break;
        }
    }
    wait_end(&waiter, comm);
    return r;
}

/* Sends or receives a message that needs no waiting, or almost none. Returns false if the task must
 * be run. */
static bool run_now(struct muster_comm *comm, struct task *task)
{
    const struct prepared *call = &task->call;
    if (call->kind == MUSTER_SEND) {
        return call->bytes <= MESSAGE_NOW_BYTES && message_send_now(comm, call);
    }
    return call->kind == MUSTER_RECV && message_receive_now(comm, task);
}

int progress_run(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    use_enter(&comm->use, COMM_IN_CALL);
    atomic_signal_fence(memory_order_seq_cst); /* pairs with the membarrier of progress_drain */
    if (comm->fenced) {
        atomic_thread_fence(memory_order_seq_cst);
    }
    int r = MUSTER_EABORTED;
    if (atomic_load_explicit(&comm->life.word, memory_order_relaxed) == 0) {
        r = run_now(comm, task) ? 1 : run_here(comm, task, err);
        lane_note_end(comm, task, r);
    } else {
        muster_fail(err, r, "this communicator was closed");
    }
    assert(use_is(&comm->use, COMM_IN_CALL));
    use_leave(&comm->use, COMM_IN_CALL);
    return r < 0 ? r : 0;
}

void progress_drain(struct muster_comm *comm)
{
    assert(phase_code(&comm->life) != 0);
    /* Orders our store of `life` against the plain store of `use` on the thread that makes calls.
     * If there is no membarrier, that thread orders its store with a fence, and this fence pairs
     * with it. */
    if (comm->fenced || syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) < 0) {
        atomic_thread_fence(memory_order_seq_cst);
    }
    while (!inside_is(comm, INSIDE_CALL) && use_is(&comm->use, COMM_IN_CALL)) {
        bell_ring(comm->control);
        sched_yield();
    }
    for (int l = 0; l < LANES; l++) {
        struct lane *lane = &comm->lanes[l];
        while (!lane_enter(lane)) {
            (void)nanosleep(&(struct timespec){0, DRAIN_LOOK_NS}, NULL);
        }
        struct muster_request *request;
        while ((request = lane_first(lane))) {
            lane_finish(comm, lane, request, failure_check(comm, &request->task, &request->err));
        }
        lane_leave(lane);
    }
}
