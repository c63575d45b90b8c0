/* Checks names and sizes of types, operations and calls, and which calls have overlapping
 * buffers. */
#include "comm/state/types.h"

#include "base/testing/test.h"
#include "core/flight.h"

static void every_value_has_a_name_and_no_other_has(void **state)
{
    (void)state;
    for (int i = -2; i < 40; i++) {
        enum muster_type type = (enum muster_type)i;
        enum muster_op op = (enum muster_op)i;
        enum muster_collective kind = (enum muster_collective)i;
        bool is_type = i >= MUSTER_BOOL && i < MUSTER_NUM_TYPES;
        bool is_op = i >= MUSTER_SUM && i < MUSTER_NUM_OPS;
        bool is_kind = i >= 0 && i <= MUSTER_RECV;
        assert_int_equal(types_has_type(type), is_type);
        assert_int_equal(muster_type_bytes(type) > 0, is_type);
        assert_int_equal(strcmp(muster_type_name(type), "unknown type") != 0, is_type);
        assert_int_equal(types_has_op(op), is_op);
        assert_int_equal(strcmp(muster_op_name(op), "unknown operation") != 0, is_op);
        assert_int_equal(types_find_kind(kind) != NULL, is_kind);
        assert_int_equal(strcmp(types_kind_name(kind), "unknown call") != 0, is_kind);
    }
    assert_int_equal(muster_type_bytes(MUSTER_BOOL), 1);
    assert_int_equal(muster_type_bytes(MUSTER_BF16), 2);
    assert_int_equal(muster_type_bytes(MUSTER_F32), 4);
    assert_int_equal(muster_type_bytes(MUSTER_I64), 8);
}

static void kinds_reduce_or_have_a_root(void **state)
{
    (void)state;
    static const struct {
        enum muster_collective kind;
        bool reduces, has_peer;
    } kinds[] = {
        {MUSTER_ALL_REDUCE, true, false},     {MUSTER_REDUCE, true, true},
        {MUSTER_REDUCE_SCATTER, true, false}, {MUSTER_BROADCAST, false, true},
        {MUSTER_SCATTER, false, true},        {MUSTER_GATHER, false, true},
        {MUSTER_ALL_GATHER, false, false},    {MUSTER_ALL_TO_ALL, false, false},
        {MUSTER_BARRIER, false, false},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        assert_int_equal(types_find_kind(kinds[i].kind)->reduces, kinds[i].reduces);
        assert_int_equal(types_find_kind(kinds[i].kind)->rooted, kinds[i].has_peer);
        assert_int_equal(flight_reduces(kinds[i].kind), kinds[i].reduces);
        assert_int_equal(flight_has_root(kinds[i].kind), kinds[i].has_peer);
    }
}

static void a_total_that_overflows_is_the_most(void **state)
{
    (void)state;
    const size_t counts[] = {1, SIZE_MAX - 2, 1, 1, 5};
    assert_int_equal(types_total(counts, 0), 0);
    assert_int_equal(types_total(counts, 2), SIZE_MAX - 1);
    assert_int_equal(types_total(counts, 3), SIZE_MAX);
    assert_int_equal(types_total(counts, 4), SIZE_MAX);
    assert_int_equal(types_total(counts, 5), SIZE_MAX); /* not the wrapped sum */
}

enum { COUNT = 4, SIZE = 3, RANK = 1 };

/* Returns whether the output overlaps the input if it is `by` elements behind it, or before it. */
static bool overlaps(struct prepared call, int by)
{
    static float memory[64];
    call.unit = sizeof memory[0];
    call.in = memory + 32;
    call.out = memory + 32 + by;
    return types_is_in_place(&call, RANK, SIZE);
}

/* Checks at which element the output begins and ceases to overlap the input, at both ends. */
static void overlap_is_seen_to_the_element(void **state)
{
    (void)state;
    static const size_t counts[] = {2, 3, 4};
    static const struct {
        struct prepared call;
        int in, out; /* number of elements */
    } calls[] = {
        {{.kind = MUSTER_ALL_REDUCE, .count = COUNT}, COUNT, COUNT},
        {{.kind = MUSTER_REDUCE, .count = COUNT}, COUNT, COUNT},
        {{.kind = MUSTER_REDUCE_SCATTER, .count = COUNT}, COUNT * SIZE, COUNT},
        {{.kind = MUSTER_SCATTER, .count = COUNT}, COUNT * SIZE, COUNT},
        {{.kind = MUSTER_ALL_GATHER, .count = COUNT}, COUNT, COUNT * SIZE},
        {{.kind = MUSTER_GATHER, .count = COUNT}, COUNT, COUNT * SIZE},
        {{.kind = MUSTER_ALL_TO_ALL, .count = COUNT}, COUNT * SIZE, COUNT * SIZE},
        {{.kind = MUSTER_ALL_GATHER, .out_counts = counts}, 3, 9}, /* the input has counts[RANK] */
        {{.kind = MUSTER_ALL_TO_ALL, .in_counts = counts, .out_counts = counts}, 9, 9},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        assert_true(overlaps(calls[i].call, 0));
        assert_true(overlaps(calls[i].call, calls[i].in - 1));
        assert_false(overlaps(calls[i].call, calls[i].in));
        assert_true(overlaps(calls[i].call, 1 - calls[i].out));
        assert_false(overlaps(calls[i].call, -calls[i].out));
    }
    assert_true(overlaps((struct prepared){.kind = MUSTER_BROADCAST, .count = COUNT}, 20));
    const struct prepared nothing = {.kind = MUSTER_ALL_REDUCE, .unit = sizeof(float)};
    assert_false(types_is_in_place(&nothing, RANK, SIZE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_a_name_and_no_other_has),
        cmocka_unit_test(kinds_reduce_or_have_a_root),
        cmocka_unit_test(a_total_that_overflows_is_the_most),
        cmocka_unit_test(overlap_is_seen_to_the_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
