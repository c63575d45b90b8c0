/* The fast paths of the most frequent call: a blocking all-reduce on one host, while no other call
 * is under way. A fast path uses the same words and boards as a task and gives the same bits. When
 * the peers do not come soon, a task is made that goes on with what has been done.
 *
 * The time before a rank publishes and the time after the last peer has published add up; the time
 * between them costs nothing. So a call that is like the call before it is not checked again, and
 * all that the fast paths share is inline.
 *
 * Layer: comm. Memory: none. Thread: the caller's.
 */
#pragma once

#include <assert.h>

#include "comm/algorithm/way.h"
#include "comm/shm/line.h"
#include "comm/state/bell.h"
#include "comm/state/call_log.h"

/* The round of a call on a fast path; passed by value, so that it stays in registers. */
struct fast_path {
    uint64_t number;
    uint32_t signature;
    uint32_t round;
};

/* Runs the planned call in the normal way, which reports why the fast path did not take it. */
int fast_refuse(struct muster_comm *comm, const void *in, void *out, struct muster_err *err);

/* Makes the planned call a task that has published its first round; the way sets the rest. */
void fast_task(struct muster_comm *comm, const void *in, void *out, struct fast_path quick,
               struct task *ret);

static inline struct board *fast_board(struct muster_comm *comm, int rank, uint32_t round)
{
    return segment_board(&comm->segment, rank, LANE_MAIN, round % BOARD_SLOTS);
}

/* Begins a call. Returns false if another call is under way, or no call is possible any more. */
static inline bool fast_enter(struct muster_comm *comm, struct fast_path *ret)
{
    assert(comm->all_local);
    use_enter(&comm->use, COMM_IN_CALL);
    atomic_signal_fence(memory_order_seq_cst); /* pairs with the membarrier of progress_drain */
    const struct lane *main = &comm->lanes[LANE_MAIN], *side = &comm->lanes[LANE_SIDE];
    bool hindered = ((uintptr_t)atomic_load_explicit(&main->last, memory_order_acquire) |
                     (uintptr_t)atomic_load_explicit(&side->last, memory_order_acquire) |
                     (unsigned)atomic_load_explicit(&comm->life.word, memory_order_relaxed)) != 0;
    if (hindered || comm->process != heartbeat_process()) {
        use_leave(&comm->use, COMM_IN_CALL);
        return false;
    }
    ret->number = atomic_load_explicit(&comm->started, memory_order_relaxed) + 1;
    ret->signature = call_log_sign(ret->number, way_plan(comm)->digest + comm->history);
    ret->round = main->round;
    atomic_store_explicit(&comm->started, ret->number, memory_order_relaxed);
    call_log_write(comm, ret->number, way_plan(comm)->call.shape, way_plan(comm)->call.total);
    return true;
}

static inline void fast_publish(struct muster_comm *comm, uint32_t round, uint32_t signature,
                                struct board *mine)
{
    atomic_store_explicit(&mine->flag, segment_flag(round + 1, signature), memory_order_release);
    bell_wake_locals(comm);
}

/* Waits a little for the boards of all others in this round. Returns false if some of them have not
 * published it yet, or do something else. */
bool fast_wait_oversubscribed(struct muster_comm *comm, uint32_t round, uint32_t signature);
enum { FAST_SPINS = 2000 };
static inline bool fast_wait(struct muster_comm *comm, uint32_t round, uint32_t signature,
                             int spins)
{
    uint64_t want = segment_flag(round + 1, signature);
    if (spins > 0 && comm->oversubscribed) {
        return fast_wait_oversubscribed(comm, round, signature);
    }
    for (int r = 0; r < comm->size; r++) {
        const struct board *board = fast_board(comm, r, round);
        while (r != comm->rank &&
               atomic_load_explicit(&board->flag, memory_order_acquire) != want) {
            if (--spins < 0) {
                return false;
            }
            line_pause();
        }
    }
    return true;
}

/* Called after fast_wait returned false. Writes the rank that the task waits for and returns 0, or
 * returns a negative code if that rank does something else. */
int fast_missing(struct muster_comm *comm, struct task *task, uint32_t round,
                 struct muster_err *err);

/* Called when the rounds of a task stop before their end; r: what rounds_run returned, 0 or
 * negative. Returns 0, with the rank that is waited for in task->waiting, or a negative code if a
 * rank does something else or has closed. */
int fast_leave_rounds(struct muster_comm *comm, struct task *task, uint32_t round, int r,
                      struct muster_err *err);

/* next_round: the first round of the boards that this call did not use. */
static inline void fast_leave(struct muster_comm *comm, struct fast_path quick, uint32_t next_round)
{
    comm->lanes[LANE_MAIN].round = next_round;
    atomic_store_explicit(&comm->completed, quick.number, memory_order_relaxed);
    call_log_end(comm, quick.number);
    use_leave(&comm->use, COMM_IN_CALL);
}
