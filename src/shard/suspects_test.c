/* Blame: a poisonous record is found by halving, named once, and no other is. */
#include "shard/scene_test.h"

#include <stdlib.h>

/* A worker joins, takes the next records, and crashes if the poison is among them. */
static bool lives(struct scene *scene, uint64_t owner, uint64_t poison, size_t *crashes)
{
    joins(scene, owner);
    wants(scene, owner, 64);
    struct shard_range range = scene->effects.list[0].range;
    bool crash = range.first <= poison && poison < shard_range_end(range);
    of_part(scene, crash ? SHARD_BLAME : SHARD_COMMIT, owner, range);
    *crashes += crash;
    return !crash;
}

static void a_batch_is_halved_until_one_record_is_left(void **state)
{
    (void)state;
    struct shard_dataset spec = {.size = 1024, .epochs = 1, .batch = 64, .block = 1, .seed = 4};
    for (uint64_t poison = 128; poison < 192; poison += 21) {
        struct scene scene;
        size_t crashes = 0;
        scene_start(&scene, &spec);
        for (uint64_t owner = 1; !shard_has_failed(scene.state); owner++) {
            (void)lives(&scene, owner, poison, &crashes);
            char *failed = strstr(scene.text, "failed");
            assert_int_equal(failed != NULL, shard_has_failed(scene.state));
            if (!failed) {
                leaves(&scene, owner);
            }
        }
        assert_int_equal(crashes, 7);
        assert_true(scene.effects.list[0].range.first == poison);
        assert_int_equal(scene.effects.list[0].range.count, 1);
        joins(&scene, 1000);
        wants(&scene, 1000, 1);
        assert_int_equal(scene.effects.list[0].reason, SHARD_POISONED);
        scene_end(&scene);
    }
}

static void three_crashes_name_a_batch_of_one(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 3, .epochs = 1, .batch = 1, .set_aside = true};
    scene_start(&scene, &spec);
    for (uint64_t owner = 1; owner <= 3; owner++) {
        joins(&scene, owner);
        wants(&scene, owner, 1);
        assert_true(scene.effects.list[0].range.first == 0);
        of_part(&scene, SHARD_BLAME, owner, (struct shard_range){.count = 1});
        assert_effects(&scene, owner < 3 ? "suspected 0:0-0" : "set aside 0:0-0");
        leaves(&scene, owner);
    }
    uint32_t dataset = 9;
    uint64_t record = 9;
    assert_true(shard_aside(scene.state, 0, &dataset, &record));
    assert_true(dataset == 0 && record == 0);
    assert_false(shard_aside(scene.state, 1, &dataset, &record));
    joins(&scene, 9);
    wants(&scene, 9, 1);
    commits(&scene, 9, 1, 1);
    wants(&scene, 9, 1);
    commits(&scene, 9, 2, 1);
    assert_effects(&scene, "epoch done");
    scene_end(&scene);
}

static void suspects_wait_for_a_worker_that_holds_nothing(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 100, .epochs = 1, .batch = 4};
    scene_start(&scene, &spec);
    joins(&scene, 1);
    joins(&scene, 2);
    wants(&scene, 1, 4);
    wants(&scene, 2, 4);
    of_part(&scene, SHARD_BLAME, 1, (struct shard_range){.count = 4});
    assert_effects(&scene, "suspected 0:0-1, suspected 0:2-3");
    leaves(&scene, 1);
    wants(&scene, 2, 4);
    assert_effects(&scene, "wait 2");
    commits(&scene, 2, 4, 4);
    assert_effects(&scene, "granted 2 0:0-1 alone");
    wants(&scene, 2, 4);
    assert_effects(&scene, "wait 2");
    commits(&scene, 2, 0, 2);
    assert_effects(&scene, "granted 2 0:2-3 alone");
    commits(&scene, 2, 2, 2);
    wants(&scene, 2, 4);
    assert_effects(&scene, "granted 2 0:8-11");
    scene_end(&scene);
}

/* A worker that is pre-empted while it has suspects costs no try. */
static void leaving_is_no_crash(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 1, .epochs = 1, .batch = 1};
    scene_start(&scene, &spec);
    joins(&scene, 1);
    wants(&scene, 1, 1);
    of_part(&scene, SHARD_BLAME, 1, (struct shard_range){.count = 1});
    leaves(&scene, 1);
    for (uint64_t owner = 2; owner < 10; owner++) {
        joins(&scene, owner);
        wants(&scene, owner, 1);
        assert_true(scene.effects.list[0].alone);
        leaves(&scene, owner);
    }
    assert_false(shard_has_failed(scene.state));
    scene_end(&scene);
}

/* Several ranges in flight are tried one by one. */
static void scattered_records_are_tried_one_by_one(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 100, .epochs = 1, .batch = 8};
    scene_start(&scene, &spec);
    joins(&scene, 1);
    wants(&scene, 1, 8);
    struct shard_part parts[] = {{1, {0, 0, 0, 2}}, {1, {0, 0, 5, 3}}};
    feed(&scene, (struct shard_event){.kind = SHARD_BLAME, .parts = parts, .part_count = 2});
    assert_effects(&scene, "suspected 0:0-1, suspected 0:5-7");
    leaves(&scene, 1);
    joins(&scene, 2);
    wants(&scene, 2, 8);
    assert_effects(&scene, "granted 2 0:0-1 alone");
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_halved_until_one_record_is_left),
        cmocka_unit_test(three_crashes_name_a_batch_of_one),
        cmocka_unit_test(suspects_wait_for_a_worker_that_holds_nothing),
        cmocka_unit_test(leaving_is_no_crash),
        cmocka_unit_test(scattered_records_are_tried_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
