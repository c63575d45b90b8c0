/* The check of a result by `muster perf`: a right result has no wrong elements, every wrong element
 * is counted, and elements at another element's place are wrong. */
#include "perf/perf.h"

#include "base/testing/test.h"
#include "perf/value.h"

#include <stdlib.h>

enum { COUNT = 67, MOST = 64 * COUNT };

static const enum muster_collective kinds[] = {
    MUSTER_ALL_REDUCE, MUSTER_REDUCE,  MUSTER_REDUCE_SCATTER, MUSTER_ALL_GATHER,
    MUSTER_BROADCAST,  MUSTER_SCATTER, MUSTER_GATHER,         MUSTER_ALL_TO_ALL};
static const int worlds[] = {1, 2, 3, 4, 5, 8, 64};

static bool has_blocks(enum muster_collective k)
{
    return k == MUSTER_ALL_GATHER || k == MUSTER_GATHER || k == MUSTER_ALL_TO_ALL;
}

static size_t elements_of(const struct perf_options *o)
{
    return has_blocks(o->kind) ? (size_t)o->ranks * COUNT : COUNT;
}

/* The elements that every rank contributes. */
static double given[64][MOST];

static void take_inputs(const struct perf_options *o)
{
    static uint64_t in[MOST];
    for (int r = 0; r < o->ranks; r++) {
        perf_fill(o, r, (size_t)o->ranks * COUNT, in);
        for (size_t i = 0; i < (size_t)o->ranks * COUNT; i++) {
            given[r][i] = perf_load(o->type, in, i);
        }
    }
}

/* Reduces element i, where rank `twice` counts twice; -1: no rank does. */
static double reduce(const struct perf_options *o, size_t i, int twice)
{
    double value = given[0][i];
    for (int r = 1; r < o->ranks; r++) {
        value = perf_reduce(o->op, value, given[r][i]);
    }
    value = twice < 0 ? value : perf_reduce(o->op, value, given[twice][i]);
    return perf_finish(o->type, o->op, o->ranks, value);
}

/* Returns element i of what this rank must get, by the definition of the collective. */
static double right(const struct perf_options *o, int rank, size_t i)
{
    size_t mine = (size_t)rank * COUNT, block = i / COUNT, at = i % COUNT;
    switch (o->kind) {
    case MUSTER_ALL_REDUCE:
    case MUSTER_REDUCE: return reduce(o, i, -1);
    case MUSTER_REDUCE_SCATTER: return reduce(o, mine + i, -1);
    case MUSTER_BROADCAST: return given[0][i];
    case MUSTER_SCATTER: return given[0][mine + i];
    case MUSTER_ALL_TO_ALL: return given[block][mine + at];
    case MUSTER_ALL_GATHER:
    case MUSTER_GATHER: return given[block][at];
    case MUSTER_BARRIER:
    case MUSTER_SEND:
    case MUSTER_RECV: return 0;
    }
    return 0;
}

static int last_that_looks(const struct perf_options *o)
{
    return o->kind == MUSTER_REDUCE || o->kind == MUSTER_GATHER ? 0 : o->ranks - 1;
}

static void get_right(const struct perf_options *o, int rank, uint64_t *ret)
{
    for (size_t i = 0; i < elements_of(o); i++) {
        perf_store(o->type, ret, i, right(o, rank, i));
    }
}

/* Calls fn for every collective, type and size of the world. */
static void for_each(enum muster_type first, void (*fn)(const struct perf_options *o))
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int type = (int)first; type < MUSTER_NUM_TYPES; type++) {
            for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
                struct perf_options o = {
                    .kind = kinds[k], .type = (enum muster_type)type, .ranks = worlds[w]};
                take_inputs(&o);
                fn(&o);
            }
        }
    }
}

static void count_each(const struct perf_options *o)
{
    static uint64_t out[MOST];
    int rank = last_that_looks(o);
    get_right(o, rank, out);
    assert_int_equal(perf_count_wrong(o, rank, COUNT, out), 0);
    for (size_t i = 0; i < elements_of(o); i++) {
        perf_store(o->type, out, i, 127); /* larger than every element */
        if (i % 31 == 0 || i + 1 == elements_of(o)) {
            assert_int_equal(perf_count_wrong(o, rank, COUNT, out), i + 1);
        }
    }
}

static void every_wrong_element_is_counted(void **state)
{
    (void)state;
    for_each(MUSTER_U8, count_each);
}

static void results_of_every_op_are_exact(void **state)
{
    (void)state;
    static uint64_t out[MOST];
    for (int op = MUSTER_SUM; op < MUSTER_NUM_OPS; op++) {
        for (int type = MUSTER_BOOL; type <= (op >= MUSTER_BAND ? MUSTER_I64 : MUSTER_F64);
             type++) {
            struct perf_options o = {.kind = MUSTER_ALL_REDUCE,
                                     .type = (enum muster_type)type,
                                     .op = (enum muster_op)op,
                                     .ranks = 64};
            take_inputs(&o);
            size_t kinds_of_result[128] = {0}, different = 0;
            for (size_t i = 0; i < COUNT; i++) {
                double value = reduce(&o, i, -1);
                assert_true(value >= 0 && value < 128);
                different += kinds_of_result[(size_t)value]++ == 0;
            }
            assert_true(different > 1); /* otherwise the place of an element would not matter */
            get_right(&o, 0, out);
            assert_int_equal(perf_count_wrong(&o, 0, COUNT, out), 0);
        }
    }
}

/* Puts the elements of the next block in the place of each block. */
static void swap_blocks(const struct perf_options *o, uint64_t *out, int rank)
{
    for (int a = 0; has_blocks(o->kind) && a < o->ranks; a++) {
        int b = (a + 1) % o->ranks;
        for (size_t i = 0; a != b && i < COUNT; i++) {
            perf_store(o->type, out, (size_t)a * COUNT + i, right(o, rank, (size_t)b * COUNT + i));
        }
        if (a != b) {
            assert_true(perf_count_wrong(o, rank, COUNT, out) > COUNT / 4);
        }
        get_right(o, rank, out);
    }
}

/* Moves the elements one place further. */
static void shift(const struct perf_options *o, uint64_t *out, int rank)
{
    for (size_t i = 0; i < elements_of(o); i++) {
        perf_store(o->type, out, i, right(o, rank, (i + 1) % elements_of(o)));
    }
    assert_true(perf_count_wrong(o, rank, COUNT, out) > 0);
    get_right(o, rank, out);
}

/* Gives this rank the result of another rank, if each rank has its own. */
static void take_anothers(const struct perf_options *o, uint64_t *out, int rank)
{
    bool own = o->kind == MUSTER_REDUCE_SCATTER || o->kind == MUSTER_SCATTER ||
               o->kind == MUSTER_ALL_TO_ALL;
    for (int other = 0; own && other < o->ranks; other++) {
        if (other != rank) {
            get_right(o, other, out);
            assert_true(perf_count_wrong(o, rank, COUNT, out) > 0);
        }
    }
    get_right(o, rank, out);
}

/* Reduces with one rank counted twice. */
static void add_twice(const struct perf_options *o, uint64_t *out)
{
    for (int r = 0; o->kind == MUSTER_ALL_REDUCE && r < o->ranks; r++) {
        for (size_t i = 0; i < COUNT; i++) {
            perf_store(o->type, out, i, reduce(o, i, r));
        }
        assert_true(perf_count_wrong(o, 0, COUNT, out) > 0);
    }
}

static void misplace(const struct perf_options *o)
{
    static uint64_t out[MOST];
    int rank = last_that_looks(o);
    get_right(o, rank, out);
    swap_blocks(o, out, rank);
    shift(o, out, rank);
    take_anothers(o, out, rank);
    add_twice(o, out);
}

static void what_stands_elsewhere_is_wrong(void **state)
{
    (void)state;
    for_each(MUSTER_U8, misplace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wrong_element_is_counted),
        cmocka_unit_test(results_of_every_op_are_exact),
        cmocka_unit_test(what_stands_elsewhere_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
