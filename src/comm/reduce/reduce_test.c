/* Checks that the kernels of all instruction sets give the same bits, and that the 16-bit formats
 * are rounded as IEEE 754 requires. */
#include "comm/reduce/reduce.h"

#include "base/testing/test.h"
#include "comm/reduce/half.h"

#include <math.h>
#include <stdlib.h>

enum { COUNT = 1003, SOURCES = 3 };

static void every_half_survives_the_way_through_float(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        uint16_t half = (uint16_t)bits;
        float as_half = half_to_float(half), as_bfloat = bfloat_to_float(half);
        assert_true(isnan(as_half) ? isnan(half_to_float(half_from_float(as_half)))
                                   : half_from_float(as_half) == half);
        assert_true(isnan(as_bfloat) ? isnan(bfloat_to_float(bfloat_from_float(as_bfloat)))
                                     : bfloat_from_float(as_bfloat) == half);
    }
}

static void rounding_is_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(half_from_float(1.0f + 0x1p-11f), 0x3c00); /* half way is rounded to even */
    assert_int_equal(half_from_float(1.0f + 0x3p-11f), 0x3c02);
    assert_int_equal(half_from_float(65519.0f), 0x7bff); /* the largest */
    assert_int_equal(half_from_float(65520.0f), 0x7c00); /* infinity */
    assert_int_equal(half_from_float(0x1p-24f), 0x0001); /* the smallest subnormal */
    assert_int_equal(half_from_float(0x1p-25f), 0x0000);
    assert_int_equal(half_from_float(-2.0f), 0xc000);
    assert_int_equal(bfloat_from_float(1.0f + 0x1p-8f), 0x3f80);
    assert_int_equal(bfloat_from_float(1.0f + 0x3p-8f), 0x3f82);
}

static void reduce(reduce_fn fn, enum muster_type type, void *out, int n, int divisor)
{
    static uint64_t data[SOURCES][COUNT];
    const void *sources[SOURCES];
    uint64_t seed = 1;
    for (int s = 0; s < SOURCES; s++) {
        sources[s] = data[s];
        for (int i = 0; i < COUNT; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            /* The exponents are small enough that no sum becomes NaN, whose bits are not
             * defined. */
            data[s][i] = type >= MUSTER_F16 ? seed & 0xbfffbfffbfffbfffu : seed;
        }
    }
    fn(out, sources, n, COUNT, divisor);
}

static void instruction_sets_agree(void **state)
{
    (void)state;
    static uint64_t plain[COUNT], fastest[COUNT];
    for (int type = MUSTER_BOOL; type < MUSTER_NUM_TYPES; type++) {
        for (int op = MUSTER_SUM; op < MUSTER_NUM_OPS; op++) {
            reduce_fn a = reduce_plain((enum muster_type)type, (enum muster_op)op).reduce;
            reduce_fn b = reduce_find((enum muster_type)type, (enum muster_op)op);
            assert_true(!a == !b);
            for (int n = 1; a && n <= SOURCES; n++) {
                reduce(a, (enum muster_type)type, plain, n, op == MUSTER_AVG ? 3 : 1);
                reduce(b, (enum muster_type)type, fastest, n, op == MUSTER_AVG ? 3 : 1);
                assert_memory_equal(plain, fastest,
                                    COUNT * muster_type_bytes((enum muster_type)type));
            }
        }
    }
}

static void other_kernels_are_the_reduce_with_more_written(void **state)
{
    (void)state;
    static uint64_t once[COUNT], first[COUNT], second[COUNT], left[COUNT], right[COUNT];
    reduce(reduce_find(MUSTER_I64, MUSTER_MIN), MUSTER_I64, left, 1, 1);
    for (int i = 0; i < COUNT; i++) {
        right[i] = left[COUNT - 1 - i] & 0xbfffbfffbfffbfffu;
        left[i] &= 0xbfffbfffbfffbfffu;
    }
    const void *sources[2] = {left, right};
    for (int type = MUSTER_BOOL; type < MUSTER_NUM_TYPES; type++) {
        for (int op = MUSTER_SUM; op < MUSTER_NUM_OPS; op++) {
            struct reduce_kernels tables[] = {
                reduce_find_kernels((enum muster_type)type, (enum muster_op)op),
                reduce_plain((enum muster_type)type, (enum muster_op)op)};
            reduce_fn plain = tables[1].reduce;
            for (int w = 0; plain && w < 2; w++) {
                size_t bytes = COUNT * muster_type_bytes((enum muster_type)type);
                plain(once, sources, 2, COUNT, 1);
                memcpy(second, right, sizeof second);
                tables[w].twin(first, second, left, second, COUNT); /* second is a source */
                assert_memory_equal(once, first, bytes);
                assert_memory_equal(once, second, bytes);
                memcpy(first, left, sizeof first);
                memcpy(second, right, sizeof second);
                tables[w].swap(first, second, first, second, left, COUNT); /* both are sources */
                assert_memory_equal(once, first, bytes);
                assert_memory_equal(left, second, bytes);
            }
        }
    }
}

static void reduces_into_its_own_sources(void **state)
{
    (void)state;
    static float a[5000], b[5000];
    for (int i = 0; i < 5000; i++) {
        a[i] = (float)i;
        b[i] = (float)(2 * i);
    }
    const void *sources[2] = {a, b};
    void *outs[2] = {a, b};
    reduce_into(reduce_find(MUSTER_F32, MUSTER_SUM), outs, 2, sources, 2, 5000, sizeof(float), 1);
    for (int i = 0; i < 5000; i++) {
        assert_true(a[i] == (float)(3 * i) && b[i] == (float)(3 * i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_survives_the_way_through_float),
        cmocka_unit_test(rounding_is_to_nearest_even),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(other_kernels_are_the_reduce_with_more_written),
        cmocka_unit_test(reduces_into_its_own_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
