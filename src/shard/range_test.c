/* Ranges at their borders: neighbours do not overlap, ranges of other epochs never do, and 64 bits
 * suffice. */
#include "shard/range.h"

#include "base/testing/test.h"

static struct shard_range at(uint64_t first, uint32_t count)
{
    return (struct shard_range){.dataset = 1, .epoch = 2, .first = first, .count = count};
}

static void numbers_from_outside_are_checked(void **state)
{
    (void)state;
    assert_true(shard_range_valid(at(0, 1)));
    assert_true(shard_range_valid(at(UINT64_MAX - 7, 7)));
    assert_false(shard_range_valid(at(UINT64_MAX - 7, 8)));
    assert_false(shard_range_valid(at(5, 0)));
    assert_true(shard_range_end(at(UINT64_MAX - 7, 7)) == UINT64_MAX);
}

static void neighbours_do_not_overlap(void **state)
{
    (void)state;
    assert_true(shard_range_overlaps(at(10, 5), at(14, 1)));
    assert_true(shard_range_overlaps(at(10, 5), at(5, 6)));
    assert_true(shard_range_overlaps(at(10, 5), at(11, 1)));
    assert_false(shard_range_overlaps(at(10, 5), at(15, 1)));
    assert_false(shard_range_overlaps(at(10, 5), at(5, 5)));
}

static void a_range_covers_what_lies_inside(void **state)
{
    (void)state;
    assert_true(shard_range_covers(at(10, 5), at(10, 5)));
    assert_true(shard_range_covers(at(10, 5), at(12, 3)));
    assert_false(shard_range_covers(at(10, 5), at(12, 4)));
    assert_false(shard_range_covers(at(10, 5), at(9, 2)));
}

static void epochs_and_data_sets_are_kept_apart(void **state)
{
    (void)state;
    struct shard_range epoch = at(10, 5), dataset = at(10, 5);
    epoch.epoch = 3;
    dataset.dataset = 0;
    assert_false(shard_range_overlaps(at(10, 5), epoch));
    assert_false(shard_range_covers(at(10, 5), epoch));
    assert_false(shard_range_overlaps(at(10, 5), dataset));
    assert_false(shard_range_covers(at(10, 5), dataset));
}

static void ranges_are_sorted_by_data_set_then_epoch_then_position(void **state)
{
    (void)state;
    struct shard_range sorted[] = {{0, 9, 90, 1}, {1, 0, 50, 1}, {1, 1, 0, 9}, {1, 1, 9, 1}};
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 4; j++) {
            int order = shard_range_compare(sorted[i], sorted[j]);
            assert_true(i < j ? order < 0 : i > j ? order > 0 : order == 0);
        }
    }
}

static void taking_splits_without_a_gap(void **state)
{
    (void)state;
    struct shard_range rest = at(10, 5);
    struct shard_range taken = shard_range_take(&rest, 2);
    assert_int_equal(shard_range_compare(taken, at(10, 2)), 0);
    assert_int_equal(taken.count, 2);
    assert_int_equal(shard_range_compare(rest, at(12, 3)), 0);
    assert_int_equal(rest.count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_from_outside_are_checked),
        cmocka_unit_test(neighbours_do_not_overlap),
        cmocka_unit_test(a_range_covers_what_lies_inside),
        cmocka_unit_test(epochs_and_data_sets_are_kept_apart),
        cmocka_unit_test(ranges_are_sorted_by_data_set_then_epoch_then_position),
        cmocka_unit_test(taking_splits_without_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
