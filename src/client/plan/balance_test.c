/* Checks that work is moved from slow workers to faster ones, and otherwise stays where it is. */
#include "client/plan/balance.h"

#include "base/testing/test.h"

enum { WORKERS = 3, MS = 1000000 };

struct scene {
    uint64_t pass_ms[WORKERS];
    uint32_t micro_batches;
    uint32_t before[WORKERS], after[WORKERS];
};

static void work_goes_to_the_faster_ones(void **state)
{
    (void)state;
    static const struct scene all[] = {
        {{10, 10, 10}, 12, {4, 4, 4}, {4, 4, 4}},
        {{10, 40, 20}, 12, {4, 4, 4}, {8, 1, 3}},
        {{10, 30, 10}, 14, {5, 5, 4}, {6, 2, 6}},
        {{10, 400, 10}, 12, {4, 4, 4}, {6, 1, 5}}, /* the slow one keeps one */
        {{10, 10, 10}, 12, {6, 1, 5}, {4, 4, 4}},  /* then it gets them back */
        {{10, 11, 10}, 12, {4, 4, 4}, {4, 4, 4}},  /* the gain is too small */
        {{10, 40, 0}, 12, {4, 4, 4}, {4, 4, 4}},   /* one time is not known yet */
        {{10, 40, 10}, 3, {1, 1, 1}, {1, 1, 1}},   /* there is nothing to move */
        {{10, 40, 10}, 2, {1, 1, 0}, {1, 1, 0}},
        {{0, 0, 0}, 12, {4, 4, 4}, {4, 4, 4}},
        {{UINT64_MAX / MS, 40, 10}, 4, {2, 1, 1}, {1, 1, 2}},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        uint64_t pass_ns[WORKERS];
        uint32_t counts[WORKERS];
        bool moves = false;
        for (int r = 0; r < WORKERS; r++) {
            pass_ns[r] = all[i].pass_ms[r] * MS;
            counts[r] = all[i].before[r];
            moves = moves || all[i].before[r] != all[i].after[r];
        }
        assert_int_equal(balance_move(pass_ns, WORKERS, all[i].micro_batches, counts), moves);
        assert_memory_equal(counts, all[i].after, sizeof counts);
    }
}

/* Differences of microseconds are noise. */
static void a_gain_that_nobody_notices_moves_nothing(void **state)
{
    (void)state;
    const uint64_t pass_ns[] = {1000, 9000};
    uint32_t counts[] = {4, 4};
    assert_false(balance_move(pass_ns, 2, 8, counts));
    assert_int_equal(counts[1], 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_goes_to_the_faster_ones),
        cmocka_unit_test(a_gain_that_nobody_notices_moves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
