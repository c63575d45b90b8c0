/* Anchors: each position is trained once, whatever the generations are, and the step after the base
 * keeps its size. */
#include "shard/anchor.h"

#include "base/testing/test.h"
#include "base/testing/test_draw.h"

enum { RECORDS = 29, EPOCHS = 3 };

static const struct shard_anchor first = {.next = 2, .later = 2};

static void steps_follow_each_other(void **state)
{
    (void)state;
    const struct shard_extent extent = {.records = 11, .epochs = 2, .batch = 2};
    const struct shard_anchor anchor = {
        .version = 7, .epoch = 0, .position = 4, .next = 1, .later = 3};
    static const struct {
        uint32_t epoch, count;
        uint64_t position;
    } due[] = {{0, 2, 4}, {0, 5, 6}, {1, 6, 0}, {1, 5, 6}};
    assert_int_equal(shard_anchor_last(&anchor, extent), 11);
    for (uint64_t i = 0; i < 4; i++) {
        struct shard_place place = shard_anchor_place(&anchor, extent, 7 + i);
        assert_int_equal(place.epoch, due[i].epoch);
        assert_int_equal(place.position, due[i].position);
        assert_int_equal(shard_anchor_count(&anchor, extent, 8 + i), due[i].count);
    }
    struct shard_place end = shard_anchor_place(&anchor, extent, 11);
    assert_true(end.epoch == 2 && end.position == 0);
}

/* The step is as large as before, wherever the generation begins, so that a worker that has
 * computed a part of it continues. */
static void the_step_after_the_base_stays_as_it_was(void **state)
{
    (void)state;
    const struct shard_extent extent = {.records = 30, .epochs = 1, .batch = 2};
    struct shard_anchor grown = shard_anchor_move(&first, extent, 3, 5);
    assert_int_equal(shard_anchor_count(&grown, extent, 4), 4);
    assert_int_equal(shard_anchor_count(&grown, extent, 5), 10);
    struct shard_anchor again = shard_anchor_move(&grown, extent, 3, 1); /* no step between */
    assert_int_equal(shard_anchor_count(&again, extent, 4), 4);
    assert_int_equal(shard_anchor_count(&again, extent, 5), 2);
    struct shard_anchor shrunk = shard_anchor_move(&grown, extent, 4, 1);
    assert_int_equal(shard_anchor_count(&shrunk, extent, 5), 10);
    assert_int_equal(shard_anchor_count(&shrunk, extent, 6), 2);
}

/* The generations have any size, and begin after any step of the one before. */
static void each_position_comes_once(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int run = 0; run < 20000; run++) {
        const struct shard_extent extent = {.records = 1 + test_draw(&random, RECORDS),
                                            .epochs = 1 + test_draw(&random, EPOCHS),
                                            .batch = 1 + test_draw(&random, 4)};
        uint32_t per_worker = 1 + test_draw(&random, 3);
        struct shard_anchor anchor = {.next = per_worker, .later = per_worker};
        uint64_t version = 0, done = 0, all = extent.records * extent.epochs;
        while (version < shard_anchor_last(&anchor, extent)) {
            if (test_draw(&random, 3) == 0) {
                anchor = shard_anchor_move(&anchor, extent, version,
                                           per_worker * (1 + test_draw(&random, 5)));
                assert_true(shard_anchor_valid(&anchor, extent, version));
            }
            struct shard_place place = shard_anchor_place(&anchor, extent, version);
            assert_int_equal(place.epoch * extent.records + place.position, done);
            uint32_t count = shard_anchor_count(&anchor, extent, ++version);
            assert_true(count > 0 && place.position + count <= extent.records);
            done += count;
        }
        assert_int_equal(done, all);
        anchor = shard_anchor_move(&anchor, extent, version, 3); /* a job that is complete */
        assert_true(shard_anchor_valid(&anchor, extent, version));
        assert_int_equal(shard_anchor_last(&anchor, extent), version);
    }
}

static void numbers_from_outside_are_checked(void **state)
{
    (void)state;
    const struct shard_extent extent = {.records = 11, .epochs = 2, .batch = 1 << 20};
    const struct shard_anchor good = {
        .version = 3, .epoch = 1, .position = 10, .next = 1, .later = 4095};
    struct shard_anchor bad[7];
    assert_true(shard_anchor_valid(&good, extent, 3));
    for (int i = 0; i < 7; i++) {
        bad[i] = good;
    }
    bad[0].version = 4;
    bad[1].position = 11;
    bad[2].epoch = 2; /* in which this position does not exist */
    bad[3].epoch = 3, bad[3].position = 0;
    bad[4].next = 0;
    bad[5].later = 0;
    bad[6].next = 4096; /* times the batch: too many */
    for (int i = 0; i < 7; i++) {
        assert_false(shard_anchor_valid(&bad[i], extent, 3));
    }
}

static void a_step_has_as_many_as_can_be_counted(void **state)
{
    (void)state;
    assert_int_equal(shard_anchor_later(32, 2, 5), 10);
    assert_int_equal(shard_anchor_later(1 << 20, 1, 4096), 4095);
    assert_int_equal(shard_anchor_later(UINT32_MAX, 1, 9), 1);
    assert_int_equal(shard_anchor_later(1, UINT32_MAX, 16384), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_each_other),
        cmocka_unit_test(the_step_after_the_base_stays_as_it_was),
        cmocka_unit_test(each_position_comes_once),
        cmocka_unit_test(numbers_from_outside_are_checked),
        cmocka_unit_test(a_step_has_as_many_as_can_be_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
