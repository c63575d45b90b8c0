/* The shortest way for the commonest call: a small all-reduce on one host, blocking, nothing else
 * under way. The same words, slots and bits as exchange.c, without a task; when the peers are not
 * there soon, a task is made of what has been done and goes on.
 *
 * Layer: comm. Memory: none. Thread: the caller's.
 */
#include "comm/internal.h"

#include <string.h>

#include "comm/types.h"

enum { SMALL_BYTES = 16 * 1024, SMALL_SPINS = 2000, CLAIM_FROM_BYTES = 512 };

bool small_fits(const struct muster_comm *comm, const struct muster_call *call)
{
    return call->kind == MUSTER_ALL_REDUCE && comm->all_local && comm->size > 1 &&
           call->count <= SMALL_BYTES / 8 && comm->live_regions == 0 && call->count > 0;
}

static void publish(struct muster_comm *comm, const struct task *task, size_t bytes)
{
    struct board *board = segment_board(&comm->segment, comm->local_rank, LANE_MAIN,
                                        task->exchange.base % BOARD_SLOTS);
    memcpy(board_blob(board, bytes), task->call.in, bytes);
    atomic_store_explicit(&board->flag, comm_flag(task->exchange.base + 1, task->signature),
                          memory_order_release);
    wait_wake_locals(comm);
}

static bool all_arrived(struct muster_comm *comm, const struct task *task)
{
    uint64_t want = comm_flag(task->exchange.base + 1, task->signature);
    int spins = comm->crowded ? 1 : SMALL_SPINS;
    for (int r = 0; r < comm->size; r++) {
        struct board *board =
            segment_board(&comm->segment, r, LANE_MAIN, task->exchange.base % BOARD_SLOTS);
        while (r != comm->rank &&
               atomic_load_explicit(&board->flag, memory_order_acquire) != want) {
            if (--spins < 0) {
                return false;
            }
            comm_relax();
        }
    }
    return true;
}

static void fold(struct muster_comm *comm, const struct task *task, size_t bytes)
{
    const struct muster_call *call = &task->call;
    const void *sources[COMM_MAX_RANKS];
    for (int r = 0; r < comm->size; r++) {
        struct board *board =
            segment_board(&comm->segment, r, LANE_MAIN, task->exchange.base % BOARD_SLOTS);
        sources[r] = r == comm->rank ? call->in : board_blob(board, bytes);
    }
    reduce_find(call->type, call->op)(call->out, sources, comm->size, call->count,
                                      call->op == MUSTER_AVG ? comm->size : 1);
    if (comm->size == 2 && bytes >= CLAIM_FROM_BYTES) {
        comm_claim((void *)(uintptr_t)sources[1 - comm->rank], bytes);
    }
}

/* The task as it is after its first step. */
static int go_on(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    uint32_t base = task->exchange.base;
    exchange_start(comm, task, SCHEDULE_ALL_REDUCE);
    task->exchange.begun = true;
    task->exchange.base = base;
    task->exchange.published = 1;
    return progress_run(comm, task, err);
}

int small_run(struct muster_comm *comm, const struct muster_call *call, struct muster_err *err)
{
    struct task task;
    struct lane *lane = &comm->lanes[LANE_MAIN];
    int rc = call_check(comm, call, err);
    if (rc < 0) {
        return rc;
    }
    atomic_store_explicit(&comm->in_call, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* with the membarrier of progress_drain */
    call_number(comm, call, &task);
    if (atomic_load_explicit(&comm->closed, memory_order_relaxed)) {
        return progress_run(comm, &task, err);
    }
    call_begin(comm, &task);
    task.exchange.base = lane->round;
    size_t bytes = call->count * task.unit;
    publish(comm, &task, bytes);
    if (!all_arrived(comm, &task)) {
        return go_on(comm, &task, err);
    }
    fold(comm, &task, bytes);
    lane->round++;
    atomic_store_explicit(&comm->completed, task.number, memory_order_relaxed);
    atomic_store_explicit(&comm->in_call, 0, memory_order_release);
    return 0;
}
