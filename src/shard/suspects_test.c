/* Blame: a poisonous record is found in parts and named once, and no other record is named. */
#include "shard/order.h"
#include "shard/scene_test.h"

#include <stdlib.h>

/* Lets a worker join and take the next records; it crashes if the poisonous record is among them.
 * Returns whether it has survived. */
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

static void a_batch_is_divided_until_one_record_is_left(void **state)
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
        assert_int_equal(crashes, 3);
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

/* Suspects are in no set, but are to do all the same; a worker that has died gets none of them. */
static void suspects_are_to_do(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 12, .epochs = 1, .batch = 4};
    struct shard_range range,
        expected[] = {{.first = 0, .count = 2}, {.first = 2, .count = 2}, {.first = 8, .count = 4}};
    scene_start(&scene, &spec);
    for (uint64_t owner = 1; owner <= 2; owner++) {
        joins(&scene, owner);
        wants(&scene, owner, 4);
    }
    wants(&scene, 1, 4);
    assert_effects(&scene, "granted 1 0:8-11");
    wants(&scene, 1, 4);
    assert_effects(&scene, "wait 1");
    feed(&scene, (struct shard_event){.kind = SHARD_STOP, .owner = 1});
    of_part(&scene, SHARD_BLAME, 1, (struct shard_range){.count = 4});
    assert_effects(&scene, "suspected 0:0-1, suspected 0:2-3");
    leaves(&scene, 1);
    struct shard_range *last = NULL;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(shard_to_do_next(scene.state, 0, last, &range));
        assert_int_equal(shard_range_compare(range, expected[i]), 0);
        assert_int_equal(range.count, expected[i].count);
        last = &expected[i];
    }
    assert_false(shard_to_do_next(scene.state, 0, last, &range));
    feed(&scene, (struct shard_event){.kind = SHARD_STOP, .owner = 1});
    assert_int_equal(scene.effects.list[0].reason, SHARD_NO_OWNER);
    commits(&scene, 2, 4, 4);
    wants(&scene, 2, 4);
    assert_effects(&scene, "granted 2 0:0-1 alone");
    assert_true(shard_to_do_next(scene.state, 0, NULL, &range));
    assert_int_equal(range.first, 2);
    scene_end(&scene);
}

/* The data set is shuffled, so that the record is elsewhere in each epoch; it may also be set aside
 * by a journal. */
static void what_is_set_aside_is_in_no_later_epoch(void **state)
{
    (void)state;
    struct shard_dataset spec = {
        .size = 7, .epochs = 3, .batch = 7, .block = 1, .seed = 9, .set_aside = true};
    for (int journaled = 0; journaled < 2; journaled++) {
        struct scene scene;
        scene.state = shard_new(0);
        feed(&scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec});
        if (journaled) {
            of_part(&scene, SHARD_LEAVE_OUT, SHARD_ANY_OWNER, (struct shard_range){0, 0, 3, 1});
        }
        feed(&scene, (struct shard_event){.kind = SHARD_SERVE});
        joins(&scene, 1);
        if (!journaled) {
            wants(&scene, 1, 7);
            for (uint32_t i = 0; i < 3; i++) {
                of_part(&scene, SHARD_BLAME, 1, (struct shard_range){0, 0, 3, 1});
                leaves(&scene, 1);
                joins(&scene, 1);
                wants(&scene, 1, 7);
            }
        }
        uint32_t dataset;
        uint64_t record, met = 0;
        struct shard_progress data;
        struct shard_range range;
        assert_true(shard_aside(scene.state, 0, &dataset, &record));
        while (shard_progress(scene.state, 0, &data) && data.epoch < 3) {
            wants(&scene, 1, 7);
            while (shard_held_next(scene.state, 1, NULL, &range)) {
                struct shard_order order;
                shard_order_init(&order, 7, 1, 9, 0, range.epoch);
                for (uint64_t at = range.first; at < shard_range_end(range); at++) {
                    assert_true(shard_order_record(&order, at) != record);
                    met++;
                }
                of_part(&scene, SHARD_COMMIT, 1, range);
            }
        }
        assert_int_equal(met, 3 * 6);
        scene_end(&scene);
    }
}

/* Every epoch is done when it begins: they are more than the effects of a step have room for. */
static void a_data_set_of_which_all_is_set_aside_ends(void **state)
{
    (void)state;
    struct shard_dataset spec = {
        .size = 1, .epochs = 3 * SHARD_EFFECTS_MAX, .batch = 1, .set_aside = true};
    struct scene scene;
    uint32_t done = 0;
    scene.state = shard_new(0);
    feed(&scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec});
    of_part(&scene, SHARD_LEAVE_OUT, SHARD_ANY_OWNER, (struct shard_range){0, 0, 0, 1});
    for (bool more = true; more; feed(&scene, (struct shard_event){.kind = SHARD_GO_ON})) {
        for (size_t i = 0; i < scene.effects.count; i++) {
            done += scene.effects.list[i].kind == SHARD_EPOCH_DONE;
        }
        more = scene.effects.more;
        assert_true(done > 0);
    }
    assert_int_equal(done, spec.epochs);
    feed(&scene, (struct shard_event){.kind = SHARD_SERVE});
    joins(&scene, 1);
    wants(&scene, 1, 1);
    assert_effects(&scene, "end 1");
    scene_end(&scene);
}

/* A worker that is pre-empted while it has suspects does not count as a try. */
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
    assert_effects(&scene, "suspected 0:0-0, suspected 0:1-1, suspected 0:5-6, suspected 0:7-7");
    leaves(&scene, 1);
    joins(&scene, 2);
    wants(&scene, 2, 8);
    assert_effects(&scene, "granted 2 0:0-0 alone");
    scene_end(&scene);
}

/* A worker that came back with more than the suspect, after a restart, may have died of the other
 * records. */
static void of_several_ranges_none_is_named(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 3, .epochs = 1, .batch = 1};
    struct shard_part parts[] = {{9, {0, 0, 0, 1}}, {9, {0, 0, 2, 1}}};
    uint8_t bytes[1024];
    scene_start(&scene, &spec);
    for (uint64_t owner = 1; owner <= 2; owner++) {
        joins(&scene, owner);
        wants(&scene, owner, 1);
        of_part(&scene, SHARD_BLAME, owner, parts[0].range);
        leaves(&scene, owner);
    }
    size_t count = shard_snapshot(scene.state, bytes, sizeof bytes);
    scene_end(&scene);
    assert_int_equal(shard_restore(bytes, count, 0, &scene.state), 0);
    joins(&scene, 9);
    feed(&scene, (struct shard_event){.kind = SHARD_HELD, .parts = parts, .part_count = 2});
    feed(&scene, (struct shard_event){.kind = SHARD_SERVE});
    feed(&scene, (struct shard_event){.kind = SHARD_BLAME, .parts = parts, .part_count = 2});
    assert_effects(&scene, "suspected 0:0-0, suspected 0:2-2");
    assert_false(shard_has_failed(scene.state));
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_divided_until_one_record_is_left),
        cmocka_unit_test(three_crashes_name_a_batch_of_one),
        cmocka_unit_test(suspects_wait_for_a_worker_that_holds_nothing),
        cmocka_unit_test(suspects_are_to_do),
        cmocka_unit_test(what_is_set_aside_is_in_no_later_epoch),
        cmocka_unit_test(a_data_set_of_which_all_is_set_aside_ends),
        cmocka_unit_test(leaving_is_no_crash),
        cmocka_unit_test(of_several_ranges_none_is_named),
        cmocka_unit_test(scattered_records_are_tried_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
