/* Pairwise exchange, step by step: no call ends before the other rank's chunk has arrived, each
 * chunk is reduced in rank order into its own place, and slots are used again in the same order. */
#include "comm/algorithm/pairwise.h"

#include "comm/algorithm/pair_test.h"

enum { MOST = 3000, BLOCK_BYTES = 256, GUARD = -77 };

static float in[2][MOST + 1], out[2][MOST + 2];

static float input(int rank, size_t i)
{
    return (float)(1 + rank) * (float)(i % 251) + (rank ? 0.5F : 0);
}

static void fill(size_t count)
{
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < MOST + 1; i++) {
            in[r][i] = i < count ? input(r, i) : GUARD;
        }
        for (size_t i = 0; i < MOST + 2; i++) {
            out[r][i] = GUARD;
        }
    }
}

static void begin(struct pair *pair, struct task *tasks, size_t count, enum muster_op op,
                  const size_t *skip)
{
    fill(count);
    for (int r = 0; r < 2; r++) {
        const struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                         .kind = MUSTER_ALL_REDUCE,
                                         .type = MUSTER_F32,
                                         .op = op,
                                         .in = in[r],
                                         .out = out[r] + skip[r],
                                         .count = count};
        pair_task(pair->ranks[r].comm, &call, &tasks[r]);
        pairwise_start(pair->ranks[r].comm, &tasks[r], BLOCK_BYTES);
    }
}

static float expected(enum muster_op op, size_t i)
{
    float left = input(0, i), right = input(1, i);
    return op == MUSTER_SUM   ? left + right
           : op == MUSTER_MAX ? (left > right ? left : right)
                              : (left + right) / 2;
}

static void check(size_t count, enum muster_op op, const size_t *skip)
{
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < MOST + 2; i++) {
            bool inside = i >= skip[r] && i < skip[r] + count;
            float wanted = inside ? expected(op, i - skip[r]) : GUARD;
            if (out[r][i] != wanted) {
                fail_msg("rank %d of %zu: element %zu is %g, not %g", r, count, i,
                         (double)out[r][i], (double)wanted);
            }
        }
        for (size_t i = 0; i < count; i++) {
            assert_true(in[r][i] == input(r, i));
        }
    }
}

/* Vectors shorter than a chunk, vectors whose chunks end with a block or within one, and vectors
 * that use each slot many times are all reduced correctly, one after the other in the same
 * slots. */
static void every_length_is_reduced_into_its_place(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 7, 63, 64, 65, 128, 129, 192, 200, 1000, MOST};
    static const enum muster_op ops[] = {MUSTER_SUM, MUSTER_AVG, MUSTER_MAX};
    static const size_t skips[][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
    struct pair pair;
    struct task tasks[2];
    pair_open(&pair, false);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            for (size_t s = 0; s < sizeof skips / sizeof skips[0]; s++) {
                begin(&pair, tasks, counts[i], ops[o], skips[s]);
                pair_run(&pair, tasks);
                check(counts[i], ops[o], skips[s]);
            }
        }
    }
    pair_close(&pair);
}

/* Rank 0 steps several times: it fills its slots, and takes nothing before rank 1 has begun. */
static void nothing_is_reduced_before_the_other_has_come(void **state)
{
    (void)state;
    static const size_t skip[] = {0, 0};
    struct pair pair;
    struct task tasks[2];
    pair_open(&pair, false);
    begin(&pair, tasks, 1000, MUSTER_SUM, skip);
    struct muster_comm *first = pair.ranks[0].comm;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(tasks[0].step(first, &tasks[0], NULL), 0);
        assert_int_equal(way_of(&tasks[0])->pairwise.at.published, OWNER_SLOTS);
        assert_int_equal(way_of(&tasks[0])->pairwise.at.consumed, 0);
        assert_false(tasks[0].moved);
        assert_int_equal(tasks[0].waiting, 1);
    }
    assert_true(out[0][0] == GUARD);
    /* Rank 1 finds both chunks, and takes as many as it has sent itself. */
    assert_int_equal(tasks[1].step(pair.ranks[1].comm, &tasks[1], NULL), 0);
    assert_int_equal(way_of(&tasks[1])->pairwise.at.consumed, OWNER_SLOTS);
    assert_true(tasks[1].moved);
    pair_run(&pair, tasks);
    check(1000, MUSTER_SUM, skip);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(pair.ranks[r].comm->lanes[LANE_MAIN].owner_turn,
                         way_of(&tasks[r])->pairwise.at.rounds);
    }
    pair_close(&pair);
}

/* Zero-copy hands over a task that it has begun if a long buffer is private. */
static void a_task_that_begun_another_way_begins_here(void **state)
{
    (void)state;
    static const size_t skip[] = {0, 0};
    struct pair pair;
    struct task tasks[2];
    pair_open(&pair, false);
    for (uint32_t turn = 1; turn <= 3; turn++) {
        begin(&pair, tasks, 1000, MUSTER_SUM, skip);
        tasks[0].begun = tasks[1].begun = true;
        pair_run(&pair, tasks);
        check(1000, MUSTER_SUM, skip);
        assert_int_equal(pair.ranks[0].comm->lanes[LANE_MAIN].owner_turn,
                         turn * way_of(&tasks[0])->pairwise.at.rounds);
    }
    pair_close(&pair);
}

static void who_calls_something_else_is_found_out(void **state)
{
    (void)state;
    static const size_t skip[] = {0, 0};
    struct pair pair;
    struct task tasks[2];
    struct muster_err err = MUSTER_ERR_INIT;
    pair_open(&pair, false);
    begin(&pair, tasks, 1000, MUSTER_SUM, skip);
    const struct muster_call other = {.struct_size = sizeof(struct muster_call),
                                      .kind = MUSTER_ALL_REDUCE,
                                      .type = MUSTER_F32,
                                      .op = MUSTER_MAX,
                                      .in = in[1],
                                      .out = out[1],
                                      .count = 1000};
    atomic_fetch_sub(&pair.ranks[1].comm->started, 1);
    pair_task(pair.ranks[1].comm, &other, &tasks[1]);
    pairwise_start(pair.ranks[1].comm, &tasks[1], BLOCK_BYTES);
    assert_int_equal(tasks[0].step(pair.ranks[0].comm, &tasks[0], &err), 0);
    assert_int_equal(tasks[1].step(pair.ranks[1].comm, &tasks[1], &err), MUSTER_EMISMATCH);
    assert_non_null(strstr(err.text, "1000 f32 by max"));
    assert_non_null(strstr(err.text, "1000 f32 by sum"));
    assert_true(out[1][0] == GUARD);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_is_reduced_into_its_place),
        cmocka_unit_test(nothing_is_reduced_before_the_other_has_come),
        cmocka_unit_test(a_task_that_begun_another_way_begins_here),
        cmocka_unit_test(who_calls_something_else_is_found_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
