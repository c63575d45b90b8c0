/* All-reduce by shares, step by step: in shared memory nothing is copied to a board; private memory
 * is staged except the rank's own share; no rank reduces before both have published the addresses
 * of their buffers; and a long private buffer makes both ranks use another way. */
#include "comm/algorithm/zero_copy.h"

#include "comm/algorithm/fast_path.h"
#include "comm/algorithm/pair_test.h"

enum { COUNT = 1000, LONG = 6000 /* too long to be staged */, GUARD = -77, CANARY = 0x5a };

static float private_in[2][LONG], private_out[2][LONG];
static int gone_private;

static float input(int rank, size_t i)
{
    return (float)(1 + rank) * (float)(i % 251) + (rank ? 0.5F : 0);
}

static int ends(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    (void)comm;
    (void)task;
    (void)err;
    return 1;
}

static void go_private(struct muster_comm *comm, struct task *task)
{
    (void)comm;
    gone_private++;
    task->step = ends;
}

/* The input and output of a rank. */
struct place {
    float *in, *out;
};

static struct place shared_of(const struct pair *pair, int rank)
{
    float *memory = pair->ranks[rank].shared;
    return (struct place){memory, memory + LONG};
}

static struct place private_of(int rank)
{
    return (struct place){private_in[rank], private_out[rank]};
}

static void begin(struct pair *pair, struct task *tasks, const struct place *places, size_t count,
                  enum muster_op op)
{
    gone_private = 0;
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < count; i++) {
            places[r].out[i] = GUARD;
            places[r].in[i] = input(r, i);
        }
        const struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                         .kind = MUSTER_ALL_REDUCE,
                                         .type = MUSTER_F32,
                                         .op = op,
                                         .in = places[r].in,
                                         .out = places[r].out,
                                         .count = count};
        struct muster_comm *comm = pair->ranks[r].comm;
        pair_task(comm, &call, &tasks[r]);
        zero_copy_start(comm, &tasks[r], go_private);
        for (uint32_t slot = 0; slot < BOARD_SLOTS; slot++) {
            memset(fast_board(comm, r, slot)->data, CANARY, count * sizeof(float));
        }
    }
}

static float expected(enum muster_op op, size_t i)
{
    return (input(0, i) + input(1, i)) / (op == MUSTER_AVG ? 2 : 1);
}

static void check(const struct place *places, size_t count, enum muster_op op)
{
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < count; i++) {
            bool in_place = places[r].in == places[r].out;
            if (places[r].out[i] != expected(op, i) ||
                (!in_place && places[r].in[i] != input(r, i))) {
                fail_msg("rank %d: element %zu is %g, not %g", r, i, (double)places[r].out[i],
                         (double)expected(op, i));
            }
        }
    }
}

/* Returns how many bytes of this rank's boards were written. */
static size_t staged_bytes(const struct pair *pair, int rank, size_t count)
{
    size_t sum = 0;
    for (uint32_t slot = 0; slot < BOARD_SLOTS; slot++) {
        const char *data = fast_board(pair->ranks[rank].comm, rank, slot)->data;
        for (size_t i = 0; i < count * sizeof(float); i++) {
            sum += data[i] != CANARY;
        }
    }
    return sum;
}

static void run_all(struct pair *pair, struct task *tasks, const struct place *places, size_t count)
{
    static const enum muster_op ops[] = {MUSTER_SUM, MUSTER_AVG};
    for (int turn = 0; turn < 6; turn++) { /* more turns than boards */
        enum muster_op op = ops[turn % 2];
        begin(pair, tasks, places, count, op);
        uint32_t round = pair->ranks[0].comm->lanes[LANE_MAIN].round;
        pair_run(pair, tasks);
        check(places, count, op);
        for (int r = 0; r < 2; r++) {
            assert_int_equal(pair->ranks[r].comm->lanes[LANE_MAIN].round, round + 2);
        }
    }
    assert_int_equal(gone_private, 0);
}

static void in_shared_memory_nothing_is_copied(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    pair_open(&pair, true);
    const struct place places[] = {shared_of(&pair, 0), shared_of(&pair, 1)};
    static const size_t counts[] = {1, 15, 17, COUNT, LONG};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        run_all(&pair, tasks, places, counts[i]);
        assert_int_equal(staged_bytes(&pair, 0, counts[i]), 0);
        assert_int_equal(staged_bytes(&pair, 1, counts[i]), 0);
    }
    pair_close(&pair);
}

static void private_memory_is_staged_but_for_the_ranks_share(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    pair_open(&pair, true);
    for (int mask = 1; mask < 4; mask++) {
        const struct place places[] = {mask & 1 ? private_of(0) : shared_of(&pair, 0),
                                       mask & 2 ? private_of(1) : shared_of(&pair, 1)};
        run_all(&pair, tasks, places, COUNT);
        for (int r = 0; r < 2; r++) {
            const struct zero_copy *d = &way_of(&tasks[r])->zero_copy;
            size_t staged = staged_bytes(&pair, r, COUNT);
            assert_in_range(d->share_bytes, 1, d->bytes - 1);
            if (mask >> r & 1) {
                assert_in_range(staged, 1, d->bytes - d->share_bytes);
            } else {
                assert_int_equal(staged, 0);
            }
        }
    }
    pair_close(&pair);
}

static void nobody_reduces_before_both_have_told(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    pair_open(&pair, true);
    const struct place places[] = {shared_of(&pair, 0), shared_of(&pair, 1)};
    begin(&pair, tasks, places, COUNT, MUSTER_SUM);
    struct muster_comm *one = pair.ranks[0].comm, *other = pair.ranks[1].comm;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tasks[0].step(one, &tasks[0], NULL), 0);
        assert_int_equal(tasks[0].waiting, 1);
    }
    assert_true(places[0].out[0] == GUARD && places[1].out[0] == GUARD);
    /* Rank 1 has both addresses: it writes its share, and only its share, into both outputs. */
    assert_int_equal(tasks[1].step(other, &tasks[1], NULL), 0);
    for (size_t i = 0; i < COUNT; i++) {
        size_t at = i * sizeof(float);
        bool its = at >= way_of(&tasks[1])->zero_copy.share_offset &&
                   at < way_of(&tasks[1])->zero_copy.share_offset +
                            way_of(&tasks[1])->zero_copy.share_bytes;
        float wanted = its ? expected(MUSTER_SUM, i) : GUARD;
        assert_true(places[0].out[i] == wanted && places[1].out[i] == wanted);
    }
    assert_int_equal(tasks[0].step(one, &tasks[0], NULL), 1);
    assert_int_equal(tasks[1].step(other, &tasks[1], NULL), 1);
    check(places, COUNT, MUSTER_SUM);
    pair_close(&pair);
}

static void a_long_private_buffer_of_one_sends_both_another_way(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    pair_open(&pair, true);
    const struct place places[] = {shared_of(&pair, 0), private_of(1)};
    begin(&pair, tasks, places, LONG, MUSTER_SUM);
    uint32_t round = pair.ranks[0].comm->lanes[LANE_MAIN].round;
    pair_run(&pair, tasks);
    assert_int_equal(gone_private, 2);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(pair.ranks[r].comm->lanes[LANE_MAIN].round, round + 1);
        assert_true(places[r].out[0] == GUARD);
    }
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_shared_memory_nothing_is_copied),
        cmocka_unit_test(private_memory_is_staged_but_for_the_ranks_share),
        cmocka_unit_test(nobody_reduces_before_both_have_told),
        cmocka_unit_test(a_long_private_buffer_of_one_sends_both_another_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
