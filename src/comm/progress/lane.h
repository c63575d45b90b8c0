/* Lanes: queues of started calls, and the thread that steps each. Layer: comm; see lane.c. */
#pragma once

#include <assert.h>

#include "comm/state/call_log.h"
#include "comm/state/state.h"

struct muster_request *lane_first(struct lane *lane);
/* Makes this thread the holder of the lane, which steps its requests and takes them out. Returns
 * false if another thread holds it. */
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
/* Steps a lane, unless another thread does; with the slow checks of a wait if `check` is set.
 * Returns true if something moved or ended, so that more may soon. */
bool lane_try(struct muster_comm *comm, struct lane *lane, bool check);
/* Ends a request with 1 or its error. Called by the holder of the lane. */
void lane_finish(struct muster_comm *comm, struct lane *lane, struct muster_request *request,
                 int r);
/* Called when a task ended, with 1 or its error: the communicator counts the call, or closes. */
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
/* Called after a failed wait. Returns 1 if what had arrived before completes the task, 0 if the
 * task waits for another rank now. */
int lane_last_step(struct muster_comm *comm, struct task *task, int failure);
/* Calls lane_try for all lanes. */
bool lane_try_all(struct muster_comm *comm, bool check);
/* Appends a request. If `steps` is set and no other thread steps its lane, makes its first step: a
 * message takes its place, after those that were started before; nothing is read. */
void lane_start(struct muster_comm *comm, struct muster_request *request, bool steps);
/* Sends a message at once if it needs no task (message_send_now), behind the messages that were
 * started before. */
bool lane_send_now(struct muster_comm *comm, const struct prepared *call);
int lane_in_flight(struct muster_comm *comm);
