/* What is said of types, operations and calls: names, sizes, which fields are a call's own, and
 * what overlaps. */
#include "comm/state/types.h"

#include "base/testing/test.h"

static void every_value_has_a_name_and_no_other_has(void **state)
{
    (void)state;
    for (int i = -2; i < 40; i++) {
        enum muster_type type = (enum muster_type)i;
        enum muster_op op = (enum muster_op)i;
        enum muster_collective kind = (enum muster_collective)i;
        bool is_type = i >= MUSTER_BOOL && i <= MUSTER_F64;
        bool is_op = i >= MUSTER_SUM && i <= MUSTER_BXOR;
        bool is_kind = i >= 0 && i <= MUSTER_RECV;
        assert_int_equal(types_has_type(type), is_type);
        assert_int_equal(muster_type_bytes(type) > 0, is_type);
        assert_int_equal(strcmp(muster_type_name(type), "unknown type") != 0, is_type);
        assert_int_equal(types_has_op(op), is_op);
        assert_int_equal(strcmp(muster_op_name(op), "unknown operation") != 0, is_op);
        assert_int_equal(types_has_kind(kind), is_kind);
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
        assert_int_equal(types_reduces(kinds[i].kind), kinds[i].reduces);
        assert_int_equal(types_has_peer(kinds[i].kind), kinds[i].has_peer);
    }
}

/* Of all-gather only the output's counts, of all-to-all either; of others none. */
static void a_call_has_only_its_own_fields(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 2};
    for (int kind = 0; kind <= MUSTER_RECV; kind++) {
        for (int given = 0; given < 4; given++) {
            struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                       .kind = (enum muster_collective)kind,
                                       .count = 7,
                                       .in_counts = given & 1 ? counts : NULL,
                                       .out_counts = given & 2 ? counts : NULL};
            bool gathers = kind == MUSTER_ALL_GATHER && given & 2;
            bool exchanges = kind == MUSTER_ALL_TO_ALL && given;
            assert_int_equal(types_has_counts(&call), gathers || exchanges);
            struct muster_call own = types_own_fields(&call);
            assert_ptr_equal(own.in_counts, exchanges ? call.in_counts : NULL);
            assert_ptr_equal(own.out_counts, gathers || exchanges ? call.out_counts : NULL);
            assert_int_equal(own.count, gathers || exchanges || kind == MUSTER_BARRIER ? 0 : 7);
        }
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
    assert_int_equal(types_total(counts, 5), SIZE_MAX); /* and not what is left of it */
}

enum { COUNT = 4, SIZE = 3, RANK = 1 };

/* The output lies `by` elements behind the input, or before it. */
static bool overlaps(struct muster_call call, int by)
{
    static float memory[64];
    call.type = MUSTER_F32;
    call.in = memory + 32;
    call.out = memory + 32 + by;
    return types_is_in_place(&call, RANK, SIZE);
}

/* From where to where the output may lie and touch the input: both ends are looked at. */
static void overlap_is_seen_to_the_element(void **state)
{
    (void)state;
    static const size_t counts[] = {2, 3, 4};
    static const struct {
        struct muster_call call;
        int in, out; /* elements of each */
    } calls[] = {
        {{.kind = MUSTER_ALL_REDUCE, .count = COUNT}, COUNT, COUNT},
        {{.kind = MUSTER_REDUCE, .count = COUNT}, COUNT, COUNT},
        {{.kind = MUSTER_REDUCE_SCATTER, .count = COUNT}, COUNT * SIZE, COUNT},
        {{.kind = MUSTER_SCATTER, .count = COUNT}, COUNT * SIZE, COUNT},
        {{.kind = MUSTER_ALL_GATHER, .count = COUNT}, COUNT, COUNT * SIZE},
        {{.kind = MUSTER_GATHER, .count = COUNT}, COUNT, COUNT * SIZE},
        {{.kind = MUSTER_ALL_TO_ALL, .count = COUNT}, COUNT * SIZE, COUNT * SIZE},
        {{.kind = MUSTER_ALL_GATHER, .out_counts = counts}, 3, 9}, /* its own: counts[RANK] */
        {{.kind = MUSTER_ALL_TO_ALL, .in_counts = counts, .out_counts = counts}, 9, 9},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        assert_true(overlaps(calls[i].call, 0));
        assert_true(overlaps(calls[i].call, calls[i].in - 1));
        assert_false(overlaps(calls[i].call, calls[i].in));
        assert_true(overlaps(calls[i].call, 1 - calls[i].out));
        assert_false(overlaps(calls[i].call, -calls[i].out));
    }
    assert_true(overlaps((struct muster_call){.struct_size = sizeof(struct muster_call),
                                              .kind = MUSTER_BROADCAST,
                                              .count = COUNT},
                         20));
    const struct muster_call nothing = {
        .struct_size = sizeof(struct muster_call), .kind = MUSTER_ALL_REDUCE, .type = MUSTER_F32};
    assert_false(types_is_in_place(&nothing, RANK, SIZE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_a_name_and_no_other_has),
        cmocka_unit_test(kinds_reduce_or_have_a_root),
        cmocka_unit_test(a_call_has_only_its_own_fields),
        cmocka_unit_test(a_total_that_overflows_is_the_most),
        cmocka_unit_test(overlap_is_seen_to_the_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
