/* Sets of ranges against a plain array of flags, by random operations; their borders and limits. */
#include "shard/set.h"

#include "base/testing/test.h"

#include <muster/err.h>

enum { POSITIONS = 300, EPOCHS = 2, OPERATIONS = 200000, BIG = 100000 };

static struct shard_range at(uint32_t epoch, uint64_t first, uint32_t count)
{
    return (struct shard_range){.epoch = epoch, .first = first, .count = count};
}

static void assert_range(struct shard_range range, uint64_t first, uint32_t count)
{
    assert_true(range.first == first);
    assert_int_equal(range.count, count);
}

/* The expected content of a set. */
struct model {
    bool in[EPOCHS][POSITIONS];
};

static size_t model_count(const struct model *model, struct shard_range range)
{
    size_t count = 0;
    for (uint64_t i = range.first; i < shard_range_end(range); i++) {
        count += model->in[range.epoch][i];
    }
    return count;
}

static void model_fill(struct model *model, struct shard_range range, bool in)
{
    for (uint64_t i = range.first; i < shard_range_end(range); i++) {
        model->in[range.epoch][i] = in;
    }
}

/* Checks that the ranges are sorted, apart from each other, and exactly those of the model. */
static void assert_same(const struct shard_set *set, const struct model *model)
{
    size_t ranges = 0, records = 0;
    struct shard_range range, last = {0};
    for (bool more = shard_set_first(set, &range); more;
         more = shard_set_next(set, range, &range)) {
        assert_int_equal(model_count(model, range), range.count);
        assert_true(ranges == 0 || last.epoch < range.epoch || shard_range_end(last) < range.first);
        last = range;
        ranges++;
        records += range.count;
    }
    size_t expected = 0;
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        expected += model_count(model, at(epoch, 0, POSITIONS));
    }
    assert_int_equal(records, expected);
    assert_int_equal(set->records, expected);
    assert_int_equal(set->ranges, ranges);
}

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

static void random_operations_agree_with_flags(void **state)
{
    (void)state;
    struct shard_nodes nodes;
    struct shard_set set;
    static struct model model;
    uint64_t seed = 1;
    assert_int_equal(shard_nodes_init(&nodes, POSITIONS * EPOCHS), 0);
    shard_set_init(&set, &nodes);
    for (int i = 0; i < OPERATIONS; i++) {
        uint32_t first = draw(&seed, POSITIONS);
        uint32_t longest = POSITIONS - first < 9 ? POSITIONS - first : 9;
        struct shard_range range = at(draw(&seed, EPOCHS), first, 1 + draw(&seed, longest));
        size_t inside = model_count(&model, range);
        assert_int_equal(shard_set_contains(&set, range), inside == range.count);
        assert_int_equal(shard_set_overlaps(&set, range), inside > 0);
        bool adds = draw(&seed, 2) == 0;
        int r = adds ? shard_set_add(&set, range) : shard_set_remove(&set, range);
        bool done = adds ? inside == 0 : inside == range.count;
        assert_int_equal(r, done ? 0 : adds ? MUSTER_EEXIST : MUSTER_ENOENT);
        if (done) {
            model_fill(&model, range, adds);
        }
        if (i % 100 == 0) {
            assert_same(&set, &model);
        }
    }
    assert_same(&set, &model);
    shard_set_clear(&set);
    assert_int_equal(nodes.free_count, nodes.used);
    shard_nodes_done(&nodes);
}

static void neighbours_become_one(void **state)
{
    (void)state;
    struct shard_nodes nodes;
    struct shard_set set;
    struct shard_range range;
    assert_int_equal(shard_nodes_init(&nodes, 4), 0);
    shard_set_init(&set, &nodes);
    assert_int_equal(shard_set_add(&set, at(0, 0, 10)), 0);
    assert_int_equal(shard_set_add(&set, at(0, 20, 10)), 0);
    assert_int_equal(shard_set_add(&set, at(1, 30, 10)), 0);
    assert_int_equal(set.ranges, 3);
    assert_int_equal(shard_set_add(&set, at(0, 10, 10)), 0);
    assert_int_equal(set.ranges, 2);
    assert_true(shard_set_first(&set, &range));
    assert_range(range, 0, 30);
    shard_nodes_done(&nodes);
}

/* Ranges that 32 bits cannot count stay apart in nodes, but count as one. */
static void more_than_32_bits_of_records(void **state)
{
    (void)state;
    struct shard_nodes nodes;
    struct shard_set set;
    assert_int_equal(shard_nodes_init(&nodes, 4), 0);
    shard_set_init(&set, &nodes);
    assert_int_equal(shard_set_add(&set, at(0, 0, UINT32_MAX)), 0);
    assert_int_equal(shard_set_add(&set, at(0, UINT32_MAX, UINT32_MAX)), 0);
    assert_int_equal(set.ranges, 2);
    assert_true(set.records == 2 * (uint64_t)UINT32_MAX);
    struct shard_range across = at(0, UINT32_MAX - 5, 10);
    assert_true(shard_set_contains(&set, across));
    assert_int_equal(shard_set_remove(&set, across), 0);
    assert_false(shard_set_overlaps(&set, across));
    assert_int_equal(set.ranges, 2);
    assert_int_equal(shard_set_add(&set, across), 0);
    assert_true(shard_set_contains(&set, at(0, UINT32_MAX - 6, 12)));
    shard_nodes_done(&nodes);
}

static void a_full_pool_refuses_and_changes_nothing(void **state)
{
    (void)state;
    struct shard_nodes nodes;
    struct shard_set set;
    assert_int_equal(shard_nodes_init(&nodes, 2), 0);
    shard_set_init(&set, &nodes);
    assert_int_equal(shard_set_add(&set, at(0, 0, 10)), 0);
    assert_int_equal(shard_set_add(&set, at(0, 20, 10)), 0);
    assert_int_equal(shard_set_add(&set, at(0, 40, 10)), MUSTER_ETOOBIG);
    assert_int_equal(shard_set_remove(&set, at(0, 3, 2)), MUSTER_ETOOBIG);
    assert_true(shard_set_contains(&set, at(0, 0, 10)));
    assert_int_equal(set.records, 20);
    assert_int_equal(shard_set_remove(&set, at(0, 8, 2)), 0); /* cuts nothing in two */
    assert_int_equal(shard_nodes_reserve(&nodes, 1), MUSTER_ETOOBIG);
    shard_nodes_done(&nodes);
}

static size_t depth(const struct shard_set *set)
{
    size_t turns = 0;
    struct shard_range range = {0};
    for (bool more = shard_set_first(set, &range); more;
         more = shard_set_next(set, range, &range)) {
        turns++;
    }
    return turns;
}

/* The test takes every second position, in ascending, descending and mixed order: ranges move
 * between sets without memory, and the pool gets all nodes back. */
static void ranges_move_between_sets_of_a_pool(void **state)
{
    (void)state;
    struct shard_nodes nodes;
    struct shard_set from, to;
    struct shard_range range;
    assert_int_equal(shard_nodes_init(&nodes, BIG), 0);
    shard_set_init(&from, &nodes);
    shard_set_init(&to, &nodes);
    for (uint64_t i = 0; i < BIG; i++) {
        assert_int_equal(shard_set_add(&from, at(0, i * 7919 % BIG * 2, 1)), 0);
    }
    assert_int_equal(shard_nodes_reserve(&nodes, 1), MUSTER_ETOOBIG);
    for (uint64_t moved = 0; shard_set_first(&from, &range); moved++) {
        assert_range(range, moved * 2, 1);
        assert_int_equal(shard_set_remove(&from, range), 0);
        assert_int_equal(shard_set_add(&to, range), 0);
    }
    assert_int_equal(from.ranges, 0);
    assert_int_equal(depth(&to), BIG);
    shard_set_clear(&to);
    assert_int_equal(nodes.free_count, BIG);
    shard_nodes_done(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_agree_with_flags),
        cmocka_unit_test(neighbours_become_one),
        cmocka_unit_test(more_than_32_bits_of_records),
        cmocka_unit_test(a_full_pool_refuses_and_changes_nothing),
        cmocka_unit_test(ranges_move_between_sets_of_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
