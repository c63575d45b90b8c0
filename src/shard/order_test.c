/* Orders are bijections, equal for equal seeds, and as mixed as chance would make them: positions
 * against records, neighbours, small sizes in full, other epochs. The bounds are of chi-square
 * statistics with seeds that are fixed: the tests give the same numbers in each run. */
#include "shard/order.h"

#include "base/testing/test.h"

#include <stdlib.h>

enum { CELLS = 16, SEEDS = 4000 };

static void assert_bijection(uint64_t size, uint32_t block, uint64_t seed)
{
    struct shard_order order;
    unsigned char *seen = calloc(size, 1);
    assert_non_null(seen);
    shard_order_init(&order, size, block, seed, 1, 2);
    for (uint64_t i = 0; i < size; i++) {
        uint64_t record = shard_order_record(&order, i);
        assert_true(record < size && !seen[record]);
        assert_true(shard_order_position(&order, record) == i);
        seen[record] = 1;
    }
    free(seen);
}

static void every_record_comes_once(void **state)
{
    (void)state;
    for (uint64_t size = 1; size <= 300; size++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            assert_bijection(size, 1, seed);
            assert_bijection(size, 7, seed);
        }
    }
    assert_bijection(60000, 1, 7);
    assert_bijection((1 << 20) - 1, 1, 7);
    assert_bijection(1 << 20, 1, 7);
    assert_bijection((1 << 20) + 1, 1, 7);
    assert_bijection(1000003, 64, 7);
}

static void sizes_of_64_bits(void **state)
{
    (void)state;
    const uint64_t sizes[] = {1000000000, UINT64_C(1) << 40, (UINT64_C(1) << 63) + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct shard_order order;
        shard_order_init(&order, sizes[i], 1, 3, 0, 0);
        uint64_t first = shard_order_record(&order, 0);
        uint64_t last = shard_order_record(&order, sizes[i] - 1);
        assert_true(first < sizes[i] && last < sizes[i] && first != last);
        assert_true(shard_order_position(&order, last) == sizes[i] - 1);
    }
}

static void without_shuffling_positions_are_records(void **state)
{
    (void)state;
    struct shard_order order;
    shard_order_init(&order, 1000, 0, 99, 0, 0);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(shard_order_record(&order, i) == i);
    }
}

static void blocks_keep_their_inner_order(void **state)
{
    (void)state;
    struct shard_order order;
    bool moved = false;
    shard_order_init(&order, 1005, 10, 5, 0, 0);
    for (uint64_t i = 0; i < 1005; i++) {
        uint64_t start = shard_order_record(&order, i / 10 * 10);
        assert_true(shard_order_record(&order, i) == start + i % 10);
        assert_int_equal(start % 10, 0);
        moved = moved || start != i / 10 * 10;
    }
    assert_true(moved);
    assert_true(shard_order_record(&order, 1004) == 1004);
}

static void the_order_of_a_seed_never_changes(void **state)
{
    (void)state;
    static const uint64_t expected[] = {429, 933, 796, 351, 744, 397, 109, 242};
    struct shard_order order;
    shard_order_init(&order, 1000, 1, 42, 0, 0);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(shard_order_record(&order, i) == expected[i]);
    }
}

static double chi_square(const uint32_t *counts, size_t cells, double expected)
{
    double sum = 0;
    for (size_t i = 0; i < cells; i++) {
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    return sum;
}

/* The position of a record is evenly distributed over seeds, for each part of the order: 255
 * degrees of freedom less the rows' and columns' fixed sums, 225; the bounds are 5 standard
 * deviations away. */
static void positions_and_records_are_independent(void **state)
{
    (void)state;
    const uint64_t sizes[] = {160, 1000, 1024, 60000};
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
        uint32_t counts[CELLS * CELLS] = {0};
        uint64_t size = sizes[n] / CELLS * CELLS, each = size / CELLS;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct shard_order order;
            shard_order_init(&order, size, 1, seed, 0, 0);
            for (uint64_t cell = 0; cell < CELLS; cell++) {
                uint64_t record = shard_order_record(&order, cell * each + seed % each);
                counts[cell * CELLS + record / each]++;
            }
        }
        double sum = chi_square(counts, CELLS * CELLS, (double)SEEDS / CELLS);
        assert_true(sum > 225 - 5 * 21.2 && sum < 225 + 5 * 21.2);
    }
}

/* The distance from a record to the next one in the order, in one large shuffle, is evenly
 * distributed. */
static void neighbours_are_independent(void **state)
{
    (void)state;
    enum { SIZE = 1 << 17, CELLS_OF_STEPS = 256 };
    uint32_t counts[CELLS_OF_STEPS] = {0};
    struct shard_order order;
    shard_order_init(&order, SIZE, 1, 11, 0, 0);
    for (uint64_t i = 0; i < SIZE; i++) {
        uint64_t step =
            shard_order_record(&order, (i + 1) % SIZE) + SIZE - shard_order_record(&order, i);
        counts[step % SIZE / (SIZE / CELLS_OF_STEPS)]++;
    }
    double sum = chi_square(counts, CELLS_OF_STEPS, (double)SIZE / CELLS_OF_STEPS);
    assert_true(sum > 255 - 5 * 22.6 && sum < 255 + 5 * 22.6);
}

/* All 24 orders of four records, and all 120 of five, occur about equally often. */
static void small_orders_are_all_reached(void **state)
{
    (void)state;
    enum { DRAWS = 60000 };
    for (uint64_t size = 3; size <= 5; size++) {
        uint32_t counts[3125] = {0};
        size_t reached = 0, all = size == 3 ? 6 : size == 4 ? 24 : 120;
        for (uint64_t seed = 0; seed < DRAWS; seed++) {
            struct shard_order order;
            size_t name = 0;
            shard_order_init(&order, size, 1, seed, 0, 0);
            for (uint64_t i = 0; i < size; i++) {
                name = name * 5 + shard_order_record(&order, i);
            }
            counts[name]++;
        }
        double expected = (double)DRAWS / (double)all;
        for (size_t name = 0; name < 3125; name++) {
            reached += counts[name] > 0;
            assert_true(counts[name] == 0 ||
                        (counts[name] > 0.6 * expected && counts[name] < 1.6 * expected));
        }
        assert_int_equal(reached, all);
    }
}

/* The number of records that two shuffles have at the same position is one on average, whatever
 * differs. */
static void epochs_data_sets_and_seeds_are_unrelated(void **state)
{
    (void)state;
    enum { SIZE = 5000, OTHERS = 200 };
    size_t same[3] = {0};
    for (uint32_t other = 1; other <= OTHERS; other++) {
        struct shard_order first, orders[3];
        shard_order_init(&first, SIZE, 1, 8, 0, 0);
        shard_order_init(&orders[0], SIZE, 1, 8 + other, 0, 0);
        shard_order_init(&orders[1], SIZE, 1, 8, other, 0);
        shard_order_init(&orders[2], SIZE, 1, 8, 0, other);
        for (uint64_t i = 0; i < SIZE; i++) {
            for (int kind = 0; kind < 3; kind++) {
                same[kind] += shard_order_record(&first, i) == shard_order_record(&orders[kind], i);
            }
        }
    }
    for (int kind = 0; kind < 3; kind++) {
        assert_in_range(same[kind], OTHERS - 75, OTHERS + 75); /* 5 standard deviations of 14 */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_comes_once),
        cmocka_unit_test(sizes_of_64_bits),
        cmocka_unit_test(without_shuffling_positions_are_records),
        cmocka_unit_test(blocks_keep_their_inner_order),
        cmocka_unit_test(the_order_of_a_seed_never_changes),
        cmocka_unit_test(positions_and_records_are_independent),
        cmocka_unit_test(neighbours_are_independent),
        cmocka_unit_test(small_orders_are_all_reached),
        cmocka_unit_test(epochs_data_sets_and_seeds_are_unrelated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
