/* Which algorithm and which blocks are chosen for an all-reduce, by its world. */
#include "schedule/choose.h"

#include "base/testing/test.h"

enum { KIB = 1024, MIB = 1024 * KIB };

static const struct schedule_tuning *const amd = &schedule_tunings[SCHEDULE_AMD];
static const struct schedule_tuning *const intel = &schedule_tunings[SCHEDULE_INTEL];

static size_t block_of(struct schedule_world world, size_t bytes)
{
    return schedule_choose(&world, bytes).block_bytes;
}

static void blocks_grow_with_the_vector(void **state)
{
    (void)state;
    struct schedule_world world = {.size = 2, .one_host = true, .tuning = amd};
    assert_int_equal(block_of(world, 64 * KIB), 16 * KIB);
    assert_int_equal(block_of(world, MIB), 32 * KIB);
    assert_int_equal(block_of(world, 64 * MIB), SCHEDULE_MAX_BLOCK_BYTES);
}

static void blocks_are_the_longest_where_that_is_better(void **state)
{
    (void)state;
    struct schedule_world world = {.size = 2, .one_host = true, .tuning = intel};
    for (size_t bytes = 16 * KIB; bytes <= 64 * MIB; bytes *= 4) {
        assert_int_equal(block_of(world, bytes), SCHEDULE_MAX_BLOCK_BYTES);
    }
    world =
        (struct schedule_world){.size = 4, .one_host = true, .oversubscribed = true, .tuning = amd};
    assert_int_equal(block_of(world, 64 * KIB), SCHEDULE_MAX_BLOCK_BYTES);
}

static void two_ranks_swap_unless_they_share_a_processor(void **state)
{
    (void)state;
    struct schedule_world world = {.size = 2, .one_host = true, .tuning = amd};
    assert_int_equal(schedule_choose(&world, MIB).algorithm, SCHEDULE_PAIRWISE);
    world.oversubscribed = true;
    assert_int_equal(schedule_choose(&world, MIB).algorithm, SCHEDULE_OWNER_REDUCE);
    world.has_shared_memory = true;
    assert_int_equal(schedule_choose(&world, MIB).algorithm, SCHEDULE_ZERO_COPY);
}

static void slots_are_taken_ahead_where_no_reader_waits_longer(void **state)
{
    (void)state;
    assert_true(schedule_takes_slot(intel, SCHEDULE_SLOT_BROADCAST, 128));
    assert_false(schedule_takes_slot(intel, SCHEDULE_SLOT_BROADCAST, 129));
    assert_false(schedule_takes_slot(intel, SCHEDULE_SLOT_BROADCAST, KIB - 1));
    assert_true(schedule_takes_slot(intel, SCHEDULE_SLOT_BROADCAST, KIB));
    assert_true(schedule_takes_slot(intel, SCHEDULE_SLOT_GATHER, 64));
    assert_false(schedule_takes_slot(intel, SCHEDULE_SLOT_GATHER, 65));
    for (size_t bytes = 0; bytes <= 4 * KIB; bytes += 64) {
        assert_true(schedule_takes_slot(intel, SCHEDULE_SLOT_SCATTER, bytes));
        assert_false(schedule_takes_slot(amd, SCHEDULE_SLOT_SCATTER, bytes));
    }
}

static bool is_power_of_two(size_t bytes)
{
    return bytes > 0 && (bytes & (bytes - 1)) == 0;
}

/* In every row the blocks fit the slots, every vector gets a block, and the sizes are possible for
 * rings. */
static void every_row_of_the_table_is_whole(void **state)
{
    (void)state;
    for (int p = 0; p < SCHEDULE_PROCESSORS; p++) {
        const struct schedule_tuning *row = &schedule_tunings[p];
        assert_int_equal(schedule_processor_find(row->name), p);
        assert_non_null(row->measured);
        assert_true(is_power_of_two(row->ring_bytes) && is_power_of_two(row->shared_ring_bytes));
        size_t below = 0;
        for (int i = 0; below < SIZE_MAX; i++) {
            assert_true(i < SCHEDULE_BLOCK_SIZES);
            assert_true(row->blocks[i].below_bytes > below);
            assert_in_range(row->blocks[i].block_bytes, 1, SCHEDULE_MAX_BLOCK_BYTES);
            below = row->blocks[i].below_bytes;
        }
    }
    assert_int_equal(schedule_processor_find("Intel"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_grow_with_the_vector),
        cmocka_unit_test(blocks_are_the_longest_where_that_is_better),
        cmocka_unit_test(two_ranks_swap_unless_they_share_a_processor),
        cmocka_unit_test(slots_are_taken_ahead_where_no_reader_waits_longer),
        cmocka_unit_test(every_row_of_the_table_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
