/* How a thread waits for other ranks, and wakes those that wait. Layer: comm; see wait.c. */
#pragma once

#include "comm/state/state.h"

struct waiter {
    unsigned turns;
    unsigned moves;
    int64_t since_ns;  /* 0: not yet looked at the clock */
    int64_t polled_ns; /* when the user's interrupted() was last asked */
    bool noticed;      /* failure_notice was called */
    uint32_t bell;
    bool sleepy; /* registered as a sleeper: the next turn sleeps */
};
/* Called between two steps that found nothing to do: spins, then yields, then sleeps. Negative:
 * give up. Without a task only the user's interruption is looked for. */
int wait_turn(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
              struct muster_err *err);
/* The checks of a turn without its wait. may_interrupt: on the thread of a blocking call. */
int wait_check(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
               bool may_interrupt, struct muster_err *err);
/* Takes the place of wait_turn when something came through a link: more may follow at once. */
int wait_moved(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
               struct muster_err *err);
/* True when it has spun long enough: from now on it yields, then sleeps. */
bool wait_is_slow(const struct waiter *waiter, const struct muster_comm *comm);
void wait_end(struct waiter *waiter, struct muster_comm *comm);
/* How long a sleep lasts at most. */
enum { WAIT_SLICE_MS = 2 };
