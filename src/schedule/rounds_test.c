/* Ranks that go through rounds in any order: no rank overwrites a slot that another rank has still
 * to read, no rank consumes a round that was not published, and all ranks end. */
#include "schedule/rounds.h"

#include "base/testing/test.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 4, TURNS = 100000 };

static void say(char *text, size_t bytes, const char *format, size_t round)
{
    size_t length = strlen(text);
    (void)snprintf(text + length, bytes - length, format, round);
}

static const char *trace_of(size_t rounds, size_t slots)
{
    static char trace[256];
    struct schedule_rounds at = {.rounds = rounds};
    trace[0] = '\0';
    for (;;) {
        switch (schedule_next(&at, schedule_window(&at, slots))) {
        case SCHEDULE_PUBLISH: say(trace, sizeof trace, "P%zu ", at.published++); break;
        case SCHEDULE_CONSUME: say(trace, sizeof trace, "C%zu ", at.consumed++); break;
        case SCHEDULE_DONE: return trace;
        }
    }
}

static void what_comes_after_what(void **state)
{
    (void)state;
    assert_string_equal(trace_of(1, 1), "P0 C0 ");
    assert_string_equal(trace_of(2, 1), "P0 C0 P1 C1 ");
    assert_string_equal(trace_of(4, 2), "P0 P1 C0 P2 C1 P3 C2 C3 ");
    assert_string_equal(trace_of(1, 2), "P0 C0 ");
    assert_int_equal(schedule_next(&(struct schedule_rounds){0}, 0), SCHEDULE_DONE);
}

/* Makes one step of a rank, unless it must wait. */
static void step(struct schedule_rounds *ranks, int r, size_t slots)
{
    struct schedule_rounds *at = &ranks[r];
    enum schedule_step next = schedule_next(at, schedule_window(at, slots));
    for (int other = 0; other < RANKS && next == SCHEDULE_CONSUME; other++) {
        if (ranks[other].published <= at->consumed) {
            return;
        }
    }
    at->published += next == SCHEDULE_PUBLISH;
    at->consumed += next == SCHEDULE_CONSUME;
    assert_true(at->consumed <= at->published && at->published <= at->rounds);
    for (int other = 0; other < RANKS; other++) {
        /* Boards have twice as many slots as there are rounds under way. */
        assert_true(at->published - ranks[other].consumed <= 2 * slots);
    }
}

static void in_any_order_no_slot_is_overwritten_and_all_end(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (size_t slots = 1; slots <= 4; slots++) {
        struct schedule_rounds ranks[RANKS];
        size_t ended = 0;
        for (int r = 0; r < RANKS; r++) {
            ranks[r] = (struct schedule_rounds){.rounds = 50};
        }
        for (int turn = 0; turn < TURNS && ended < RANKS; turn++) {
            random = random * 1664525 + 1013904223;
            step(ranks, (int)(random >> 16) % RANKS, slots);
            ended = 0;
            for (int r = 0; r < RANKS; r++) {
                ended += ranks[r].consumed == ranks[r].rounds;
            }
        }
        assert_int_equal(ended, RANKS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_after_what),
        cmocka_unit_test(in_any_order_no_slot_is_overwritten_and_all_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
