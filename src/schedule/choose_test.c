/* Which algorithm and which blocks an all-reduce takes, by its world. */
#include "schedule/choose.h"

#include "base/testing/test.h"

enum { KIB = 1024, MIB = 1024 * KIB };

static size_t block_of(struct schedule_world world, size_t bytes)
{
    return schedule_choose(&world, bytes).block_bytes;
}

static void blocks_grow_with_the_vector(void **state)
{
    (void)state;
    struct schedule_world world = {.size = 2, .one_host = true};
    assert_int_equal(block_of(world, 64 * KIB), 16 * KIB);
    assert_int_equal(block_of(world, MIB), 32 * KIB);
    assert_int_equal(block_of(world, 64 * MIB), SCHEDULE_MAX_BLOCK_BYTES);
}

static void blocks_are_the_longest_where_that_is_better(void **state)
{
    (void)state;
    struct schedule_world world = {.size = 2, .one_host = true, .long_blocks = true};
    for (size_t bytes = 16 * KIB; bytes <= 64 * MIB; bytes *= 4) {
        assert_int_equal(block_of(world, bytes), SCHEDULE_MAX_BLOCK_BYTES);
    }
    world = (struct schedule_world){.size = 4, .one_host = true, .oversubscribed = true};
    assert_int_equal(block_of(world, 64 * KIB), SCHEDULE_MAX_BLOCK_BYTES);
}

static void two_ranks_swap_unless_they_share_a_processor(void **state)
{
    (void)state;
    struct schedule_world world = {.size = 2, .one_host = true};
    assert_int_equal(schedule_choose(&world, MIB).algorithm, SCHEDULE_PAIRWISE);
    world.oversubscribed = true;
    assert_int_equal(schedule_choose(&world, MIB).algorithm, SCHEDULE_OWNER_REDUCE);
    world.has_shared_memory = true;
    assert_int_equal(schedule_choose(&world, MIB).algorithm, SCHEDULE_ZERO_COPY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_grow_with_the_vector),
        cmocka_unit_test(blocks_are_the_longest_where_that_is_better),
        cmocka_unit_test(two_ranks_swap_unless_they_share_a_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
