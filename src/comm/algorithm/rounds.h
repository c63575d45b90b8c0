/* The loop that runs the rounds of an algorithm on one host (schedule/rounds.h), as far as they
 * can go now. It is inline. A fast path is this loop with some spins and with an algorithm that
 * the compiler sees; the step of a task is the same loop without spins. For this reason the
 * functions that it calls are ROUNDS_INLINE.
 *
 * Layer: comm. Memory: the algorithm's. Thread: the holder of the lane, or the caller's
 * (fast_path.h).
 */
#pragma once

#include <assert.h>

#include "comm/state/state.h"
#include "schedule/rounds.h"

#define ROUNDS_INLINE static inline __attribute__((always_inline))

/* What an algorithm does in its rounds; `own` is the algorithm's state. */
struct rounds_way {
    size_t slots; /* rounds under way at once */
    void (*publish)(struct muster_comm *comm, void *own, size_t round);
    /* Returns whether all others have published the round. It looks at least once, and again up to
     * `spins` times. */
    bool (*wait)(struct muster_comm *comm, void *own, size_t round, int spins);
    /* Returns 1, or a code that ends the rounds here, without this round. */
    int (*consume)(struct muster_comm *comm, void *own, size_t round);
};

enum { ROUNDS_WAITING = 0, ROUNDS_DONE = 1, ROUNDS_OTHER_WAY = 2 };

/* Runs rounds as far as possible. Returns ROUNDS_WAITING if others have not published yet,
 * ROUNDS_DONE if all rounds are done, or the code with which the algorithm ended them:
 * ROUNDS_OTHER_WAY, or a negative one. */
ROUNDS_INLINE int rounds_run(struct muster_comm *comm, const struct rounds_way *way, void *own,
                             struct schedule_rounds *at, int spins)
{
    for (;;) {
        int r;
        assert(at->consumed <= at->published && at->published <= at->rounds);
        switch (schedule_next(at, schedule_window(at, way->slots))) {
        case SCHEDULE_PUBLISH: way->publish(comm, own, at->published++); break;
        case SCHEDULE_CONSUME:
            if (!way->wait(comm, own, at->consumed, spins)) {
                return ROUNDS_WAITING;
            }
            r = way->consume(comm, own, at->consumed);
            if (r != 1) {
                return r;
            }
            at->consumed++;
            break;
        case SCHEDULE_DONE: return ROUNDS_DONE;
        }
    }
}
