/* Gather-reduce in one round, step by step: no rank reduces before all have published, a task
 * continues where the fast path stopped, and a rank that makes another call gets an error. */
#include "comm/algorithm/small.h"

#include "comm/algorithm/fast_path.h"
#include "comm/algorithm/pair_test.h"

enum { MOST = 2048, GUARD = -77 };

static float in[2][MOST], out[2][MOST];

static float input(int rank, size_t i)
{
    return (float)(1 + rank) * (float)(i % 251) + (rank ? 0.5F : 0);
}

static void begin(struct pair *pair, struct task *tasks, size_t count, enum muster_op op)
{
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < MOST; i++) {
            in[r][i] = input(r, i);
            out[r][i] = GUARD;
        }
        const struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                         .kind = MUSTER_ALL_REDUCE,
                                         .type = MUSTER_F32,
                                         .op = op,
                                         .in = in[r],
                                         .out = out[r],
                                         .count = count};
        pair_task(pair->ranks[r].comm, &call, &tasks[r]);
        small_start(pair->ranks[r].comm, &tasks[r]);
    }
}

static void check(size_t count, enum muster_op op)
{
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < MOST; i++) {
            float sum = (input(0, i) + input(1, i)) / (op == MUSTER_AVG ? 2 : 1);
            float wanted = i < count ? sum : GUARD;
            if (out[r][i] != wanted) {
                fail_msg("rank %d of %zu: element %zu is %g, not %g", r, count, i,
                         (double)out[r][i], (double)wanted);
            }
        }
    }
}

static void every_count_takes_one_round(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 13, 14, 15, 127, 128, MOST};
    struct pair pair;
    struct task tasks[2];
    pair_open(&pair, false);
    for (size_t i = 0; i < 2 * sizeof counts / sizeof counts[0]; i++) {
        enum muster_op op = i % 2 ? MUSTER_AVG : MUSTER_SUM;
        uint32_t round = pair.ranks[0].comm->lanes[LANE_MAIN].round;
        begin(&pair, tasks, counts[i / 2], op);
        pair_run(&pair, tasks);
        check(counts[i / 2], op);
        for (int r = 0; r < 2; r++) {
            assert_int_equal(pair.ranks[r].comm->lanes[LANE_MAIN].round, round + 1);
        }
    }
    pair_close(&pair);
}

static void nobody_reduces_before_the_other_has_published(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    pair_open(&pair, false);
    begin(&pair, tasks, MOST, MUSTER_SUM);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tasks[0].step(pair.ranks[0].comm, &tasks[0], NULL), 0);
        assert_int_equal(tasks[0].waiting, 1);
        assert_true(out[0][0] == GUARD);
    }
    assert_int_equal(tasks[1].step(pair.ranks[1].comm, &tasks[1], NULL), 1);
    assert_true(out[0][0] == GUARD && out[1][0] != GUARD);
    assert_int_equal(tasks[0].step(pair.ranks[0].comm, &tasks[0], NULL), 1);
    check(MOST, MUSTER_SUM);
    pair_close(&pair);
}

static void who_does_something_else_is_told_so(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    pair_open(&pair, false);
    begin(&pair, tasks, 4, MUSTER_SUM);
    tasks[1].signature ^= 1;
    assert_int_equal(tasks[0].step(pair.ranks[0].comm, &tasks[0], NULL), 0);
    assert_int_equal(tasks[1].step(pair.ranks[1].comm, &tasks[1], NULL), MUSTER_EMISMATCH);
    assert_int_equal(tasks[0].step(pair.ranks[0].comm, &tasks[0], NULL), MUSTER_EMISMATCH);
    assert_true(out[0][0] == GUARD && out[1][0] == GUARD);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_count_takes_one_round),
        cmocka_unit_test(nobody_reduces_before_the_other_has_published),
        cmocka_unit_test(who_does_something_else_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
