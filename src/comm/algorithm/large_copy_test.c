/* Large copies, step by step: both ways bring every block to its place; nothing is read before the
 * other rank has published its address; and if one rank cannot read, both use the boards. */
#include "comm/algorithm/large_copy.h"

#include "comm/algorithm/pair_test.h"
#include "comm/system/remote_read_test.h"

enum { COUNT = 40000, BLOCKS = 2, READS_WAY = 1, MISSING_BYTES = 1000 };

static float in[2][BLOCKS * COUNT], out[2][BLOCKS * COUNT];

/* ---- Calls ---- */

static const struct {
    enum muster_collective kind;
    enum schedule_pattern pattern;
} kinds[] = {
    {MUSTER_ALL_GATHER, SCHEDULE_ALL_GATHER},
    {MUSTER_SCATTER, SCHEDULE_SCATTER},
    {MUSTER_ALL_TO_ALL, SCHEDULE_ALL_TO_ALL},
};

enum { ALL_TO_ALL = 2, KINDS };
_Static_assert(KINDS == sizeof kinds / sizeof kinds[0], "all of them");

static float value(int rank, size_t i)
{
    return (float)(1 + rank) * 100000 + (float)i;
}

static void begin(struct pair *pair, struct task *tasks, int k, int root)
{
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < BLOCKS * COUNT; i++) {
            in[r][i] = value(r, i);
            out[r][i] = -1;
        }
        const struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                         .kind = kinds[k].kind,
                                         .type = MUSTER_F32,
                                         .peer = root,
                                         .in = in[r],
                                         .out = out[r],
                                         .count = COUNT};
        pair_task(pair->ranks[r].comm, &call, &tasks[r]);
        assert_true(large_copy_fits(pair->ranks[r].comm, &tasks[r].call));
        large_copy_start(pair->ranks[r].comm, &tasks[r], kinds[k].pattern);
    }
}

/* Returns the i-th element of this rank's output. */
static float expected(int k, int root, int rank, size_t i)
{
    int block = (int)(i / COUNT);
    size_t within = i % COUNT, mine = (size_t)rank * COUNT + within;
    switch ((int)kinds[k].kind) {
    case MUSTER_ALL_GATHER: return value(block, within);
    case MUSTER_SCATTER: return block == 0 ? value(root, mine) : -1;
    default: return value(block, mine);
    }
}

static void check(int k, int root)
{
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < BLOCKS * COUNT; i++) {
            float wanted = expected(k, root, r, i);
            if (out[r][i] != wanted) {
                fail_msg("kind %d, root %d, rank %d: element %zu is %g, not %g", (int)kinds[k].kind,
                         root, r, i, (double)out[r][i], (double)wanted);
            }
        }
    }
}

static void open_two(struct pair *pair)
{
    remote_reads.missing_bytes = MISSING_BYTES; /* the rest is read in another turn */
    pair_open(pair, false);
    for (int r = 0; r < 2; r++) {
        pair->ranks[r].comm->oversubscribed = false; /* also on a machine with one processor */
    }
}

static void prefer(struct pair *pair, uint64_t way)
{
    struct muster_comm *comm = pair->ranks[0].comm;
    for (int k = 0; k < COMM_COPY_KINDS; k++) {
        for (int s = 0; s < COMM_COPY_SIZES; s++) {
            comm->copies[k][s] = (struct schedule_trial){
                .counts = {SCHEDULE_TRIAL_EACH, SCHEDULE_TRIAL_EACH}, .ns = {way, 1 - way}};
        }
    }
}

static void run_all(struct pair *pair)
{
    struct task tasks[2];
    for (int k = 0; k < KINDS; k++) {
        for (int root = 0; root < 2; root++) {
            begin(pair, tasks, k, root);
            pair_run(pair, tasks);
            check(k, root);
        }
    }
}

static void every_block_comes_to_its_place_either_way(void **state)
{
    (void)state;
    struct pair pair;
    open_two(&pair);
    remote_reads_begin(0, 0);
    prefer(&pair, READS_WAY);
    run_all(&pair);
    int by_reads = remote_reads.count;
    assert_true(by_reads >= 2 * KINDS);
    prefer(&pair, 1 - READS_WAY);
    run_all(&pair);
    assert_int_equal(remote_reads.count, by_reads);
    pair_close(&pair);
}

/* A new communicator tries both ways, and rank 0 measures them. */
static void both_ways_are_tried(void **state)
{
    (void)state;
    struct pair pair;
    open_two(&pair);
    remote_reads_begin(0, 0);
    for (int i = 0; i < 2 * SCHEDULE_TRIAL_EACH; i++) {
        run_all(&pair);
    }
    const struct schedule_trial *trial = &pair.ranks[0].comm->copies[0][0];
    for (int way = 0; way < 2; way++) {
        assert_true(trial->counts[way] >= SCHEDULE_TRIAL_EACH);
        assert_in_range(trial->ns[way], 1, INT64_MAX);
    }
    assert_int_equal(pair.ranks[1].comm->copies[0][0].counts[0], 0);
    pair_close(&pair);
}

/* Reads are charged for the time that is lost after the call, when the data is written for the next
 * call. */
static void reads_pay_for_what_writers_lose(void **state)
{
    (void)state;
    struct pair pair;
    open_two(&pair);
    struct schedule_tuning dear = *pair.ranks[0].comm->tuning;
    dear.retake_ns = 100000;
    dear.retakes_to_bytes = COUNT * sizeof(float);
    pair.ranks[0].comm->tuning = &dear;
    remote_reads_begin(0, 0);
    struct schedule_trial *trial =
        &pair.ranks[0].comm->copies[MUSTER_ALL_TO_ALL - MUSTER_ALL_GATHER][0];
    uint64_t later = COUNT * sizeof(float) / SEGMENT_LINE * dear.retake_ns;
    for (int i = 0; i < 2 * SCHEDULE_TRIAL_EACH; i++) {
        run_all(&pair);
    }
    assert_true(trial->ns[READS_WAY] > later);
    assert_int_equal(schedule_trial_choose(trial), 1 - READS_WAY);
    dear.retakes_to_bytes--;
    *trial = (struct schedule_trial){0};
    for (int i = 0; i < 2 * SCHEDULE_TRIAL_EACH; i++) {
        run_all(&pair);
    }
    assert_true(trial->ns[READS_WAY] < later);
    pair_close(&pair);
}

static void nothing_is_read_before_the_other_has_come(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    open_two(&pair);
    remote_reads_begin(0, 0);
    prefer(&pair, READS_WAY);
    begin(&pair, tasks, 0, 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(tasks[0].step(pair.ranks[0].comm, &tasks[0], NULL), 0);
        assert_int_equal(tasks[0].waiting, 1);
    }
    assert_int_equal(remote_reads.count, 0);
    assert_true(out[0][0] == -1);
    pair_run(&pair, tasks);
    check(0, 0);
    pair_close(&pair);
}

/* Only these buffers cannot be read, for example memory of a device; later calls may read again. */
static void buffers_that_cannot_be_read_go_by_boards(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    open_two(&pair);
    for (int number = 1; number <= 3; number++) { /* the last read fails in the middle of a block */
        prefer(&pair, READS_WAY);
        remote_reads_begin(number, EFAULT);
        begin(&pair, tasks, ALL_TO_ALL, 0);
        pair_run(&pair, tasks);
        check(ALL_TO_ALL, 0);
        assert_true(remote_reads.count >= number);
        assert_true(pair.ranks[0].comm->reads && pair.ranks[1].comm->reads);
        assert_true(schedule_trial_choose(
                        &pair.ranks[0].comm->copies[MUSTER_ALL_TO_ALL - MUSTER_ALL_GATHER][0]) !=
                    READS_WAY);
    }
    run_all(&pair);
    pair_close(&pair);
}

/* Lets rank 0 begin: it has published its address, and waits for rank 1, which is about to read. */
static void begin_with_the_first(struct pair *pair, struct task *tasks)
{
    open_two(pair);
    remote_reads_begin(0, 0);
    prefer(pair, READS_WAY);
    begin(pair, tasks, 0, 0);
    assert_int_equal(tasks[0].step(pair->ranks[0].comm, &tasks[0], NULL), 0);
}

static void close_first(void *context)
{
    const struct pair *pair = context;
    atomic_store(&pair->ranks[0].comm->control->closed, 1);
    memset(in[0], 0, sizeof in[0]);
}

static void kill_first(void *context)
{
    const struct pair *pair = context;
    atomic_fetch_or(&pair->ranks[0].comm->control->heartbeat.owner, FUTEX_OWNER_DIED);
}

/* Rank 0's call has failed, and its caller may use the buffer again. */
static void what_was_read_of_one_that_closed_is_not_used(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    struct muster_err err = MUSTER_ERR_INIT;
    begin_with_the_first(&pair, tasks);
    remote_reads.context = &pair;
    remote_reads.meanwhile = close_first;
    assert_true(tasks[1].step(pair.ranks[1].comm, &tasks[1], &err) < 0);
    remote_reads.meanwhile = NULL;
    pair_close(&pair);
}

/* Another process may have rank 0's process id by then. */
static void what_was_read_of_one_that_died_is_not_used(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    struct muster_err err = MUSTER_ERR_INIT;
    begin_with_the_first(&pair, tasks);
    remote_reads.context = &pair;
    remote_reads.meanwhile = kill_first;
    (void)tasks[1].step(pair.ranks[1].comm, &tasks[1], &err);
    remote_reads.meanwhile = NULL;
    assert_int_not_equal(way_of(&tasks[1])->large_copy.outcome, 0);
    pair_close(&pair);
}

static void who_may_not_read_ends_it_for_all(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    open_two(&pair);
    prefer(&pair, READS_WAY);
    remote_reads_begin(2, EPERM);
    begin(&pair, tasks, 0, 0);
    pair_run(&pair, tasks);
    check(0, 0);
    for (int r = 0; r < 2; r++) {
        assert_false(large_copy_fits(pair.ranks[r].comm, &tasks[r].call));
    }
    pair_close(&pair);
}

static void what_gains_nothing_goes_by_boards(void **state)
{
    (void)state;
    struct pair pair;
    open_two(&pair);
    const struct muster_comm *comm = pair.ranks[0].comm;
    size_t counts[] = {COUNT, COUNT};
    struct prepared call = {
        .kind = MUSTER_ALL_TO_ALL, .unit = 1, .bytes = comm->tuning->reads_from_bytes};
    assert_true(large_copy_fits(comm, &call));
    call.bytes--;
    assert_false(large_copy_fits(comm, &call));
    call.bytes++;
    call.out_counts = counts;
    assert_false(large_copy_fits(comm, &call));
    call.out_counts = NULL;
    call.kind = MUSTER_BROADCAST;
    assert_false(large_copy_fits(comm, &call));
    call.kind = MUSTER_ALL_TO_ALL;
    pair.ranks[0].comm->oversubscribed = true;
    assert_false(large_copy_fits(comm, &call));
    call.bytes *= 4;
    assert_true(large_copy_fits(comm, &call));
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_comes_to_its_place_either_way),
        cmocka_unit_test(both_ways_are_tried),
        cmocka_unit_test(reads_pay_for_what_writers_lose),
        cmocka_unit_test(nothing_is_read_before_the_other_has_come),
        cmocka_unit_test(buffers_that_cannot_be_read_go_by_boards),
        cmocka_unit_test(what_was_read_of_one_that_closed_is_not_used),
        cmocka_unit_test(what_was_read_of_one_that_died_is_not_used),
        cmocka_unit_test(who_may_not_read_ends_it_for_all),
        cmocka_unit_test(what_gains_nothing_goes_by_boards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
