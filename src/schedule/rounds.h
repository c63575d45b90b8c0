/* The rounds of a collective, as one rank goes through them. In a round it publishes something, and
 * when all others have published that round, too, it consumes what they brought. What it may do
 * next depends on nothing but how far it has come:
 *
 *     PUBLISH    a round is left, and enough were consumed before: what it brings is known, and
 *                the slot it goes to is free
 *     CONSUME    it has nothing to publish: it must wait for the others' round, then consume it
 *     DONE       all rounds were consumed
 *
 * Layer: pure; inline, because a fast path is nothing but this loop (comm/algorithm/rounds.h).
 */
#pragma once

#include <stddef.h>

/* consumed <= published <= rounds */
struct schedule_rounds {
    size_t rounds;
    size_t published;
    size_t consumed;
};

enum schedule_step { SCHEDULE_PUBLISH, SCHEDULE_CONSUME, SCHEDULE_DONE };

/* Returns how many rounds must be consumed before the next one is published, if at most `slots` of
 * them may be in flight at once. */
static inline size_t schedule_window(const struct schedule_rounds *at, size_t slots)
{
    return at->published < slots ? 0 : at->published - slots + 1;
}

static inline enum schedule_step schedule_next(const struct schedule_rounds *at, size_t needs)
{
    if (at->published < at->rounds && at->consumed >= needs) {
        return SCHEDULE_PUBLISH;
    }
    return at->consumed < at->rounds ? SCHEDULE_CONSUME : SCHEDULE_DONE;
}
