/* Rooted calls through slots, step by step: how far a rank may be ahead, in any order of steps,
 * also past 2^32 calls; and which rank reports that two ranks made different calls. */
#include "comm/algorithm/rooted.h"

#include "comm/algorithm/pair_test.h"
#include "comm/api/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MOST_BYTES = ROOTED_BYTES,
    STEPS = 6000,
    RUN = 100,
    HALF = ROOTED_SLOTS / 2,
    SOON = 3, /* a mismatch is found within so many calls */
};

static unsigned char in[2][2 * MOST_BYTES], out[2][2 * MOST_BYTES];

static uint64_t hash(uint64_t seed, uint64_t index)
{
    uint64_t mix = (seed * 0x9e3779b97f4a7c15u) ^ (index + 1) * 0xbf58476d1ce4e5b9u;
    mix = (mix ^ mix >> 30) * 0x94d049bb133111ebu;
    return mix ^ mix >> 31;
}

static unsigned char value_of(uint64_t call, int rank, size_t i)
{
    return (unsigned char)(call * 7 + (uint64_t)rank * 101 + i * 3);
}

/* A call of one of the four kinds, of u8. A reduce computes the sum. */
struct rooted_call {
    uint64_t index; /* its data depends on this */
    enum muster_collective kind;
    int root;
    size_t bytes;
};

static void start(struct pair *pair, int rank, const struct rooted_call *c, struct task *ret)
{
    bool broadcast = c->kind == MUSTER_BROADCAST;
    size_t filled = c->kind == MUSTER_SCATTER ? 2 * c->bytes : c->bytes;
    for (size_t i = 0; i < filled; i++) {
        in[rank][i] = value_of(c->index, rank, i);
    }
    memset(out[rank], 0, sizeof out[rank]);
    const struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                     .kind = c->kind,
                                     .type = MUSTER_U8,
                                     .peer = c->root,
                                     .in = in[rank],
                                     .out = broadcast ? in[rank] : out[rank],
                                     .count = c->bytes};
    struct muster_comm *comm = pair->ranks[rank].comm;
    *ret = (struct task){0};
    assert_int_equal(prepare_call(comm, &call, &ret->call, NULL), 0);
    assert_true(rooted_fits(comm, &ret->call));
    call_begin(comm, ret);
}

static int step(struct pair *pair, int rank, struct task *task, struct muster_err *err)
{
    return task->step(pair->ranks[rank].comm, task, err);
}

static unsigned char wanted(const struct rooted_call *c, int rank, size_t i)
{
    if (c->kind == MUSTER_SCATTER) {
        return value_of(c->index, c->root, (size_t)rank * c->bytes + i);
    }
    if (c->kind == MUSTER_REDUCE) {
        return (unsigned char)(value_of(c->index, 0, i) + value_of(c->index, 1, i));
    }
    return c->kind == MUSTER_GATHER ? value_of(c->index, (int)(i / c->bytes), i % c->bytes)
                                    : value_of(c->index, c->root, i);
}

static void check(const struct rooted_call *c, int rank)
{
    bool gathers = c->kind == MUSTER_GATHER || c->kind == MUSTER_REDUCE;
    size_t bytes = c->kind == MUSTER_GATHER ? 2 * c->bytes : c->bytes;
    const unsigned char *got = c->kind == MUSTER_BROADCAST ? in[rank] : out[rank];
    for (size_t i = 0; i < bytes && (!gathers || rank == c->root); i++) {
        if (got[i] != wanted(c, rank, i)) {
            fail_msg("rank %d, call %llu of kind %d, %zu bytes, root %d: byte %zu is %d, not %d",
                     rank, (unsigned long long)c->index, (int)c->kind, c->bytes, c->root, i, got[i],
                     wanted(c, rank, i));
        }
    }
}

static struct rooted_call broadcast_of(uint64_t index, int root)
{
    return (struct rooted_call){index, MUSTER_BROADCAST, root, 64};
}

/* Returns how many of rank 0's calls end while rank 1 makes none. */
static uint64_t run_ahead(struct pair *pair, uint64_t from, struct task *ret_waits)
{
    uint64_t ended = from;
    for (int r = 1; r == 1; ended += r == 1) {
        const struct rooted_call call = broadcast_of(ended, 0);
        start(pair, 0, &call, ret_waits);
        r = step(pair, 0, ret_waits, NULL);
        assert_in_range(r, 0, 1);
        assert_in_range(ended - from, 0, ROOTED_SLOTS);
    }
    return ended;
}

static void follow(struct pair *pair, uint64_t from, uint64_t to)
{
    struct task task;
    for (uint64_t i = from; i < to; i++) {
        const struct rooted_call call = broadcast_of(i, 0);
        start(pair, 1, &call, &task);
        assert_int_equal(step(pair, 1, &task, NULL), 1);
        check(&call, 1);
    }
}

static void who_is_ahead_waits_until_that_is_half_as_much(void **state)
{
    (void)state;
    struct pair pair;
    struct task waits;
    pair_open(&pair, false);
    uint64_t ended = run_ahead(&pair, 0, &waits), left = 0;
    assert_int_equal(ended, ROOTED_SLOTS);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(waits.waiting, 1);
        follow(&pair, left, left + HALF);
        assert_int_equal(step(&pair, 0, &waits, NULL), 0);
        follow(&pair, left + HALF, left + HALF + 1);
        left += HALF + 1;
        assert_int_equal(step(&pair, 0, &waits, NULL), 1);
        ended = run_ahead(&pair, ended + 1, &waits);
        assert_int_equal(ended, left + ROOTED_SLOTS);
    }
    pair_close(&pair);
}

/* Sets the state as if this many calls had been made. */
static void skip_to(struct pair *pair, uint64_t turn)
{
    for (int r = 0; r < 2; r++) {
        struct muster_comm *comm = pair->ranks[r].comm;
        comm->rooted.next = comm->rooted.all_left = turn;
        atomic_store(&segment_rooted(&comm->segment, comm->local_rank)->left, turn);
    }
}

/* Returns a random call. In every second run of RUN calls, on average, one rank publishes in all
 * calls, and may get ahead. */
static struct rooted_call any_call(uint64_t seed, uint64_t index)
{
    static const enum muster_collective kinds[] = {MUSTER_BROADCAST, MUSTER_REDUCE, MUSTER_GATHER,
                                                   MUSTER_SCATTER};
    static const size_t sizes[] = {0, 1, 48, 49, 64, MOST_BYTES};
    uint64_t mix = hash(seed, index);
    enum muster_collective kind = kinds[mix % 4];
    size_t bytes = sizes[(mix >> 8) % 6];
    bytes = kind == MUSTER_SCATTER ? bytes / 2 : bytes;
    bool gathers = kind == MUSTER_REDUCE || kind == MUSTER_GATHER;
    uint64_t run = hash(~seed, index / RUN), publisher = run >> 8;
    int root = (int)((run % 2 ? publisher + gathers : mix >> 16) % 2);
    return (struct rooted_call){index, kind, root, bytes};
}

/* Steps the ranks in random order, with runs in which one of them does not move. Returns the
 * largest number of calls that one rank had begun and the other had not. */
static uint64_t run_in_any_order(struct pair *pair, uint64_t seed)
{
    struct task tasks[2];
    struct rooted_call calls[2];
    uint64_t furthest = 0, begun[2] = {0, 0};
    bool under_way[2] = {false, false};
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t run = hash(seed, i / RUN);
        int peer = (int)((run % 3 == 0 ? run >> 8 : hash(seed, ~i)) % 2);
        if (!under_way[peer]) {
            calls[peer] = any_call(seed, begun[peer]++);
            start(pair, peer, &calls[peer], &tasks[peer]);
        }
        struct muster_err err = MUSTER_ERR_INIT;
        int r = step(pair, peer, &tasks[peer], &err);
        if (r < 0) {
            fail_msg("seed %llu, step %llu: rank %d: %s", (unsigned long long)seed,
                     (unsigned long long)i, peer, err.text);
        }
        under_way[peer] = r == 0;
        if (r == 1) {
            check(&calls[peer], peer);
        }
        uint64_t apart = begun[0] > begun[1] ? begun[0] - begun[1] : begun[1] - begun[0];
        assert_in_range(apart, 0, ROOTED_SLOTS + 1);
        furthest = apart > furthest ? apart : furthest;
    }
    assert_true(begun[0] > STEPS / 20 && begun[1] > STEPS / 20);
    return furthest;
}

static void any_order_of_steps(void **state)
{
    (void)state;
    static const uint64_t turns[] = {0, (UINT64_C(1) << 32) - 200, (UINT64_C(1) << 40) + 5};
    uint64_t furthest = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct pair pair;
        pair_open(&pair, false);
        skip_to(&pair, turns[seed % 3]);
        uint64_t apart = run_in_any_order(&pair, seed);
        furthest = apart > furthest ? apart : furthest;
        pair_close(&pair);
    }
    assert_int_equal(furthest, ROOTED_SLOTS + 1);
}

/* A slot that was written 2^32 turns ago does not count for this turn. */
static void an_old_slot_is_not_taken_for_a_new_one(void **state)
{
    (void)state;
    struct pair pair;
    struct task task;
    pair_open(&pair, false);
    const struct rooted_call first = broadcast_of(0, 0);
    start(&pair, 0, &first, &task);
    assert_int_equal(step(&pair, 0, &task, NULL), 1);
    follow(&pair, 0, 1);
    skip_to(&pair, UINT64_C(1) << 32);
    const struct rooted_call second = broadcast_of(1, 0);
    start(&pair, 1, &second, &task);
    assert_int_equal(step(&pair, 1, &task, NULL), 0);
    assert_int_equal(task.waiting, 0);
    pair_close(&pair);
}

static void who_reads_sees_a_mismatch_in_that_call(void **state)
{
    (void)state;
    struct pair pair;
    struct task tasks[2];
    struct muster_err err = MUSTER_ERR_INIT;
    pair_open(&pair, false);
    const struct rooted_call one = {0, MUSTER_BROADCAST, 0, 8}, other = {0, MUSTER_BROADCAST, 0, 9};
    start(&pair, 0, &one, &tasks[0]);
    assert_int_equal(step(&pair, 0, &tasks[0], NULL), 1);
    start(&pair, 1, &other, &tasks[1]);
    assert_int_equal(step(&pair, 1, &tasks[1], &err), MUSTER_EMISMATCH);
    assert_non_null(strstr(err.text, "broadcast of 8 u8, root 0"));
    assert_non_null(strstr(err.text, "broadcast of 9 u8, root 0"));
    pair_close(&pair);
}

/* Rank 0 makes `ahead` calls. Then rank 1 makes calls that differ from them, until it finds the
 * mismatch. Both ranks only publish. */
static void publish_apart(struct pair *pair, uint64_t ahead)
{
    struct task task;
    struct muster_err err = MUSTER_ERR_INIT;
    int r = 1, made = 0;
    for (uint64_t i = 0; i < ahead; i++) {
        const struct rooted_call call = broadcast_of(i, 0);
        start(pair, 0, &call, &task);
        assert_int_equal(step(pair, 0, &task, NULL), 1);
    }
    while (r == 1 && made <= SOON) {
        const struct rooted_call call = broadcast_of((uint64_t)made++, 1);
        start(pair, 1, &call, &task);
        r = step(pair, 1, &task, &err);
    }
    assert_int_equal(r, MUSTER_EMISMATCH);
    assert_in_range(made, 1, SOON);
    assert_non_null(strstr(err.text, "root 0"));
    assert_non_null(strstr(err.text, "root 1"));
}

static void who_only_publishes_sees_it_within_three_calls(void **state)
{
    (void)state;
    for (uint64_t before = 0; before < 2; before++) {
        for (uint64_t ahead = 3; ahead <= ROOTED_SLOTS - before; ahead += 7) {
            struct pair pair;
            struct task task;
            pair_open(&pair, false);
            for (uint64_t i = 0; i < before; i++) {
                const struct rooted_call call = broadcast_of(i, 0);
                start(&pair, 0, &call, &task);
                assert_int_equal(step(&pair, 0, &task, NULL), 1);
                follow(&pair, i, i + 1);
            }
            publish_apart(&pair, ahead);
            pair_close(&pair);
        }
    }
}

/* Lets the ranks end, rank 0 first. Returns what they print on stderr; the caller frees it. */
static char *end_both(struct pair *pair, int64_t notice_ms)
{
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);
    char *said = calloc(1, 1000);
    assert_true(file && saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    for (int r = 0; r < 2; r++) {
        pair->ranks[r].comm->notice_ms = notice_ms;
        rooted_end(pair->ranks[r].comm);
    }
    assert_true(dup2(saved, STDERR_FILENO) >= 0 && close(saved) == 0);
    rewind(file);
    assert_true(fread(said, 1, 999, file) < 999);
    (void)fclose(file);
    return said;
}

/* Each rank makes this many calls. In the last call each rank is its own root, so that no rank
 * compares the two. */
static void who_frees_last_says_what_nobody_compared(void **state)
{
    (void)state;
    for (uint64_t calls = 1; calls < 8; calls++) {
        struct pair pair;
        struct task task;
        bool alike = calls == 7, asked = calls != 6;
        pair_open(&pair, false);
        for (uint64_t i = 0; i < 2 * calls; i++) {
            int rank = (int)(i % 2), root = i < 2 * calls - 2 || alike ? 0 : rank;
            const struct rooted_call call = broadcast_of(i / 2, root);
            start(&pair, rank, &call, &task);
            assert_int_equal(step(&pair, rank, &task, NULL), 1);
        }
        char *said = end_both(&pair, asked ? 1000 : 0);
        if (alike || !asked) {
            assert_string_equal(said, "");
        } else {
            assert_non_null(strstr(said, "muster: as rank 0 freed its communicator: rank 0 calls"));
            assert_non_null(strstr(said, "f 64 u8, root 0 (call "));
            assert_non_null(strstr(said, "rank 1 calls broadcast of 64 u8, root 1"));
        }
        free(said);
        pair_close(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_ahead_waits_until_that_is_half_as_much),
        cmocka_unit_test(any_order_of_steps),
        cmocka_unit_test(an_old_slot_is_not_taken_for_a_new_one),
        cmocka_unit_test(who_reads_sees_a_mismatch_in_that_call),
        cmocka_unit_test(who_only_publishes_sees_it_within_three_calls),
        cmocka_unit_test(who_frees_last_says_what_nobody_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
