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
/* Between two steps that found nothing to do: spins, then yields, then sleeps. Negative: give up.
 * Without a task only the user's interruption is looked for. */
int wait_turn(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
              struct muster_err *err);
/* The checks of a turn without its wait. may_interrupt: on the thread of a blocking call. */
int wait_check(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
               bool may_interrupt, struct muster_err *err);
/* In the place of a turn when something came through a link: what comes next may be near, too. */
int wait_moved(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
               struct muster_err *err);
/* It has done with spinning and may take its time. */
bool wait_is_slow(const struct waiter *waiter, const struct muster_comm *comm);
void wait_end(struct waiter *waiter, struct muster_comm *comm);
/* How long a sleep lasts at most. */
enum { WAIT_SLICE_MS = 2 };
