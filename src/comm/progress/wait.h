/* How a thread waits for other ranks, and wakes those that wait. Layer: comm; see wait.c. */
#pragma once

#include "comm/state/state.h"

struct waiter {
    unsigned turns;
    unsigned moves;
    int64_t since_ns;  /* 0: the clock was not read yet */
    int64_t polled_ns; /* when the user's interrupted() was last asked */
    bool noticed;      /* failure_notice was called */
    uint32_t bell;
    bool sleepy; /* registered as a sleeper; the next turn sleeps */
};
/* Called between two steps that found nothing to do: spins, then yields, then sleeps. Returns a
 * negative code if the caller must give up. Without a task it only checks whether the user
 * interrupts. */
int wait_turn(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
              struct muster_err *err);
/* Makes the checks of a turn without its wait. may_interrupt: set on the thread of a blocking call.
 */
int wait_check(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
               bool may_interrupt, struct muster_err *err);
/* Called instead of wait_turn when something came through a link: more may follow at once. */
int wait_moved(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
               struct muster_err *err);
/* Whether the thread has spun long enough: from now on it yields, then sleeps. */
bool wait_is_slow(const struct waiter *waiter, const struct muster_comm *comm);
void wait_end(struct waiter *waiter, struct muster_comm *comm);
/* The longest time of one sleep. */
enum { WAIT_SLICE_MS = 2 };
