/* Lanes: queues of started calls, and the thread that steps each. Layer: comm; see lane.c. */
#pragma once

#include <assert.h>

#include "comm/state/call_log.h"
#include "comm/state/state.h"

struct muster_request *lane_first(struct lane *lane);
/* Makes this thread the lane's holder, which steps its requests and takes them out. False: another
 * thread is. */
static inline bool lane_enter(struct lane *lane)
{
    return !atomic_load_explicit(&lane->running, memory_order_relaxed) &&
           !atomic_exchange_explicit(&lane->running, true, memory_order_acquire);
}
static inline void lane_leave(struct lane *lane)
{
    assert(atomic_load_explicit(&lane->running, memory_order_relaxed));
    atomic_store_explicit(&lane->running, false, memory_order_release);
}
/* Called by the thread that starts calls. */
void lane_append(struct lane *lane, struct muster_request *request);
/* Steps a lane, if nobody else does; with the slow checks of a wait if asked. True: something moved
 * or ended, so that more may soon. */
bool lane_try(struct muster_comm *comm, struct lane *lane, bool check);
/* Ends a request with 1 or its error; by the lane's holder. */
void lane_finish(struct muster_comm *comm, struct lane *lane, struct muster_request *request,
                 int r);
/* A task ended, with 1 or its error: the communicator counts, or closes. */
void lane_note_failure(struct muster_comm *comm, const struct task *task, int r);
static inline void lane_note_end(struct muster_comm *comm, const struct task *task, int r)
{
    assert(r != 0 && "it ended");
    assert(task->lane >= 0 && task->lane < LANES);
    if (r < 0) {
        lane_note_failure(comm, task, r);
    } else if (task->lane != LANE_MESSAGES) {
        atomic_store_explicit(&comm->completed, task->number, memory_order_release);
        call_log_end(comm, task->number);
    }
}
/* Called after a failed wait: 1 if what had come before completes the task, 0 if it waits for
 * another rank now. */
int lane_last_step(struct muster_comm *comm, struct task *task, int failure);
/* All lanes, as lane_try. */
bool lane_try_all(struct muster_comm *comm, bool check);
/* Appends a request, and, if `steps` and nobody else steps its lane, does its first step. A message
 * takes its place, after those that were started before; nothing is read. */
void lane_start(struct muster_comm *comm, struct muster_request *request, bool steps);
/* Sends at once what needs no task (message_send_now), behind what was started before. */
bool lane_send_now(struct muster_comm *comm, const struct prepared *call);
int lane_in_flight(struct muster_comm *comm);
