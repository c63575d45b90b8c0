/* Steps in small scenes: which worker is granted which records, which worker waits, when a data set
 * ends, and what is refused. */
#include "shard/scene_test.h"

#include <muster/err.h>

static void grants_come_from_the_front_in_whole_batches(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 100, .epochs = 1, .batch = 8};
    scene_start(&scene, &spec);
    joins(&scene, 1);
    joins(&scene, 2);
    wants(&scene, 1, 16);
    assert_effects(&scene, "granted 1 0:0-15");
    wants(&scene, 2, 1000); /* half of its share of the 84 that are left, in whole batches */
    assert_effects(&scene, "granted 2 0:16-31");
    scene_end(&scene);
}

static void the_last_batch_is_partial_and_then_it_ends(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 20, .epochs = 1, .batch = 16};
    scene_start(&scene, &spec);
    joins(&scene, 1);
    joins(&scene, 2);
    wants(&scene, 1, 16);
    assert_effects(&scene, "granted 1 0:0-15");
    wants(&scene, 2, 16);
    assert_effects(&scene, "granted 2 0:16-19");
    wants(&scene, 2, 16);
    assert_effects(&scene, "wait 2");
    commits(&scene, 2, 16, 4);
    assert_effects(&scene, "");
    commits(&scene, 1, 0, 16);
    assert_effects(&scene, "epoch done, end 2");
    wants(&scene, 1, 16);
    assert_effects(&scene, "end 1");
    scene_end(&scene);
}

static void what_a_dead_worker_held_comes_first(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 1000, .epochs = 1, .batch = 4};
    scene_start(&scene, &spec);
    joins(&scene, 1);
    joins(&scene, 2);
    wants(&scene, 1, 12);
    wants(&scene, 2, 12);
    assert_effects(&scene, "granted 2 0:12-23");
    commits(&scene, 1, 4, 4);
    leaves(&scene, 1);
    wants(&scene, 2, 12);
    assert_effects(&scene, "granted 2 0:0-3, granted 2 0:8-11, granted 2 0:24-27");
    commits(&scene, 1, 0, 4); /* by a worker that is out */
    assert_effects(&scene, "refused 1 0:0-3");
    scene_end(&scene);
}

/* Two workers wait in the order in which they asked, and get the records that come back. */
static void who_waits_is_served_when_records_come_back(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 8, .epochs = 1, .batch = 8};
    scene_start(&scene, &spec);
    for (uint64_t owner = 1; owner <= 3; owner++) {
        joins(&scene, owner);
    }
    wants(&scene, 1, 8);
    wants(&scene, 3, 4);
    assert_effects(&scene, "wait 3");
    wants(&scene, 2, 8);
    assert_effects(&scene, "wait 2");
    of_part(&scene, SHARD_GIVE_BACK, 1, (struct shard_range){.first = 6, .count = 2});
    assert_effects(&scene, "granted 3 0:6-7");
    leaves(&scene, 1);
    assert_effects(&scene, "granted 2 0:0-5");
    scene_end(&scene);
}

static void epochs_are_kept_apart(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 8, .epochs = 2, .batch = 8};
    scene_start(&scene, &spec);
    joins(&scene, 1);
    joins(&scene, 2);
    wants(&scene, 1, 8);
    wants(&scene, 2, 8);
    assert_effects(&scene, "wait 2");
    commits(&scene, 1, 0, 8);
    assert_effects(&scene, "epoch done, granted 2 1:0-7");
    scene_end(&scene);
}

/* The next epoch is granted, but never in one grant with this one; the third is not granted yet. */
static void epochs_may_overlap(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 8, .epochs = 4, .batch = 8, .overlap = true};
    scene_start(&scene, &spec);
    joins(&scene, 1);
    joins(&scene, 2);
    joins(&scene, 3);
    wants(&scene, 1, 4);
    assert_int_equal(shard_epoch_size(scene.state, 0, 1), 0);
    wants(&scene, 1, 4);
    assert_int_equal(shard_epoch_size(scene.state, 0, 1), 8);
    of_part(&scene, SHARD_GIVE_BACK, 1, (struct shard_range){.first = 6, .count = 2});
    wants(&scene, 1, 8);
    assert_effects(&scene, "granted 1 0:6-7");
    wants(&scene, 2, 8);
    assert_effects(&scene, "granted 2 1:0-7");
    of_part(&scene, SHARD_COMMIT, 2, (struct shard_range){.epoch = 1, .count = 8});
    assert_effects(&scene, "");
    wants(&scene, 2, 8);
    assert_effects(&scene, "wait 2");
    wants(&scene, 3, 8);
    commits(&scene, 1, 0, 8);
    assert_effects(&scene, "epoch done, epoch done, granted 2 2:0-7, granted 3 3:0-7");
    scene_end(&scene);
}

static void evaluation_is_added_when_it_is_due(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset train = {.name = "train", .size = 4, .epochs = 1, .batch = 4};
    struct shard_dataset test = {
        .name = "test", .task = SHARD_EVALUATE, .size = 4, .epochs = 0, .batch = 4};
    scene_start(&scene, &train);
    feed(&scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &test});
    assert_effects(&scene, "added");
    assert_int_equal(scene.effects.list[0].dataset, 1);
    joins(&scene, 1);
    const struct shard_event want = {.kind = SHARD_WANT, .owner = 1, .dataset = 1, .count = 4};
    feed(&scene, want);
    assert_effects(&scene, "end 1");
    feed(&scene, (struct shard_event){.kind = SHARD_EXTEND, .dataset = 1, .count = 1});
    feed(&scene, want);
    assert_effects(&scene, "granted 1 0:0-3");
    scene_end(&scene);
}

static void one_name_is_one_data_set(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.name = "mnist", .size = 10, .epochs = 1, .batch = 2};
    struct shard_event tell = {.kind = SHARD_DATASET, .dataset_spec = &spec};
    scene_start(&scene, &spec);
    feed(&scene, tell);
    assert_effects(&scene, "added");
    spec.size = 11;
    feed(&scene, tell);
    assert_effects(&scene, "refused");
    assert_int_equal(scene.effects.list[0].reason, SHARD_CONFLICT);
    spec.size = 9;
    feed(&scene, (struct shard_event){.kind = SHARD_SHRINK, .count = 9});
    assert_effects(&scene, "shrunk");
    feed(&scene, tell); /* by a worker that sees the reduced size */
    assert_effects(&scene, "added");
    scene_end(&scene);
}

/* Positions of an open epoch stay; the next one has fewer. */
static void a_data_set_that_shrinks(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 10, .epochs = 2, .batch = 10, .block = 1};
    scene_start(&scene, &spec);
    joins(&scene, 1);
    feed(&scene, (struct shard_event){.kind = SHARD_SHRINK, .count = 7});
    assert_int_equal(shard_epoch_size(scene.state, 0, 0), 10);
    wants(&scene, 1, 10);
    assert_effects(&scene, "granted 1 0:0-9");
    commits(&scene, 1, 0, 10);
    wants(&scene, 1, 10);
    assert_effects(&scene, "granted 1 1:0-6");
    feed(&scene, (struct shard_event){.kind = SHARD_SHRINK, .count = 8});
    assert_effects(&scene, "refused");
    feed(&scene, (struct shard_event){.kind = SHARD_SHRINK, .count = 0});
    assert_effects(&scene, "refused");
    scene_end(&scene);
}

/* The records of the lease may still be committed, until the event GONE. */
static void a_lease_that_runs_out(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 8, .epochs = 1, .batch = 4};
    scene_start(&scene, &spec);
    joins(&scene, 1);
    joins(&scene, 2);
    wants(&scene, 1, 4);
    assert_true(shard_next_ms(scene.state) == SHARD_LEASE_MS);
    feed(&scene,
         (struct shard_event){.kind = SHARD_RENEW, .owner = 2, .expires_ms = 2 * SHARD_LEASE_MS});
    feed(&scene, (struct shard_event){.kind = SHARD_TICK, .now_ms = SHARD_LEASE_MS - 1});
    assert_effects(&scene, "");
    feed(&scene, (struct shard_event){.kind = SHARD_TICK, .now_ms = SHARD_LEASE_MS});
    assert_effects(&scene, "expired 1");
    assert_true(shard_next_ms(scene.state) == 2 * SHARD_LEASE_MS);
    wants(&scene, 1, 4);
    assert_effects(&scene, "refused 1");
    wants(&scene, 2, 8);
    assert_effects(&scene, "granted 2 0:4-7");
    commits(&scene, 1, 0, 2);
    assert_effects(&scene, "");
    leaves(&scene, 1);
    wants(&scene, 2, 8);
    assert_effects(&scene, "granted 2 0:2-3");
    scene_end(&scene);
}

static void a_commit_is_all_or_nothing(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 100, .epochs = 1, .batch = 4};
    scene_start(&scene, &spec);
    joins(&scene, 1);
    joins(&scene, 2);
    wants(&scene, 1, 4);
    wants(&scene, 2, 4);
    struct shard_part parts[] = {{1, {0, 0, 0, 4}}, {2, {0, 0, 4, 4}}, {2, {0, 0, 7, 1}}};
    struct shard_event commit = {.kind = SHARD_COMMIT, .parts = parts, .part_count = 3};
    feed(&scene, commit);
    assert_effects(&scene, "refused 2 0:7-7");
    assert_int_equal(scene.effects.list[0].reason, SHARD_TWICE);
    parts[2] = (struct shard_part){1, {0, 0, 7, 1}};
    feed(&scene, commit);
    assert_int_equal(scene.effects.list[0].reason, SHARD_NOT_HELD);
    assert_int_equal(shard_held(scene.state, 1), 4);
    commit.part_count = 2;
    feed(&scene, commit);
    assert_effects(&scene, "");
    assert_int_equal(shard_held(scene.state, 1) + shard_held(scene.state, 2), 0);
    scene_end(&scene);
}

/* The manifest of a step does not name the holders of records. */
static void whoever_holds_it_may_be_left_open(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = 100, .epochs = 1, .batch = 4};
    scene_start(&scene, &spec);
    for (uint64_t owner = 1; owner <= 3; owner++) {
        joins(&scene, owner);
        wants(&scene, owner, 4);
    }
    commits(&scene, SHARD_ANY_OWNER, 2, 8);
    assert_effects(&scene, "");
    assert_int_equal(shard_held(scene.state, 1), 2);
    assert_int_equal(shard_held(scene.state, 2), 0);
    assert_int_equal(shard_held(scene.state, 3), 2);
    commits(&scene, SHARD_ANY_OWNER, 10, 3);
    assert_effects(&scene, "refused 0:10-12");
    assert_int_equal(shard_held(scene.state, 3), 2);
    scene_end(&scene);
}

/* 150 workers wait for one epoch's end: their grants come in several steps. */
static void effects_are_bounded(void **state)
{
    (void)state;
    enum { WORKERS = 150 };
    struct scene scene;
    struct shard_dataset spec = {.size = WORKERS, .epochs = 2, .batch = 1};
    size_t granted = 0;
    int steps = 0;
    scene_start(&scene, &spec);
    joins(&scene, WORKERS);
    for (uint32_t position = 0; position < WORKERS; position++) {
        wants(&scene, WORKERS, 1);
    }
    for (uint64_t owner = 1; owner < WORKERS; owner++) {
        joins(&scene, owner);
        wants(&scene, owner, 1);
    }
    commits(&scene, WORKERS, 0, WORKERS);
    for (bool more = true; more; steps++) {
        for (size_t i = 0; i < scene.effects.count; i++) {
            granted += scene.effects.list[i].kind == SHARD_GRANTED;
        }
        more = scene.effects.more;
        feed(&scene, (struct shard_event){.kind = SHARD_GO_ON});
    }
    assert_int_equal(granted, WORKERS - 1);
    assert_int_equal(steps, 3);
    scene_end(&scene);
}

/* The journal may have a step that its worker had not applied when it reported its held records. */
static void a_lease_that_was_committed_in_part(void **state)
{
    (void)state;
    struct scene scene = {.state = shard_new(0)};
    struct shard_dataset spec = {.size = 100, .epochs = 1, .batch = 4};
    feed(&scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec});
    commits(&scene, SHARD_ANY_OWNER, 0, 8);
    commits(&scene, SHARD_ANY_OWNER, 16, 4);
    joins(&scene, 1);
    of_part(&scene, SHARD_HELD, 1, (struct shard_range){.first = 4, .count = 20});
    assert_effects(&scene, "refused 1 0:4-23");
    struct shard_range held;
    assert_true(shard_held_next(scene.state, 1, NULL, &held));
    assert_int_equal(held.first, 8);
    assert_int_equal(held.count, 8);
    assert_true(shard_held_next(scene.state, 1, &held, &held));
    assert_int_equal(held.first, 20);
    assert_int_equal(held.count, 4);
    assert_false(shard_held_next(scene.state, 1, &held, &held));
    joins(&scene, 2);
    feed(&scene, (struct shard_event){.kind = SHARD_SERVE});
    wants(&scene, 2, 4);
    assert_effects(&scene, "granted 2 0:24-27");
    scene_end(&scene);
}

static void requests_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.name = "a", .size = 10, .epochs = 1, .batch = 2};
    scene_start(&scene, &spec);
    wants(&scene, 7, 4);
    assert_int_equal(scene.effects.list[0].reason, SHARD_NO_OWNER);
    joins(&scene, 0);
    assert_int_equal(scene.effects.list[0].reason, SHARD_BAD_REQUEST);
    joins(&scene, 1);
    joins(&scene, 1);
    assert_int_equal(scene.effects.list[0].reason, SHARD_CONFLICT);
    wants(&scene, 1, 0);
    assert_int_equal(scene.effects.list[0].reason, SHARD_BAD_REQUEST);
    feed(&scene, (struct shard_event){.kind = SHARD_WANT, .owner = 1, .dataset = 1, .count = 1});
    assert_int_equal(scene.effects.list[0].reason, SHARD_NO_DATASET);
    of_part(&scene, SHARD_HELD, 1, (struct shard_range){.count = 1});
    assert_int_equal(scene.effects.list[0].reason, SHARD_NOT_HELD);
    struct shard_dataset bad[] = {{.name = "b", .size = 0, .batch = 1},
                                  {.name = "b", .size = 1, .batch = 0},
                                  {.name = "b", .size = SHARD_SIZE_MAX + 1, .batch = 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        feed(&scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &bad[i]});
        assert_int_equal(scene.effects.list[0].reason, SHARD_BAD_REQUEST);
    }
    feed(&scene, (struct shard_event){.kind = SHARD_EXTEND, .count = UINT32_MAX});
    assert_int_equal(scene.effects.list[0].reason, SHARD_BAD_REQUEST);
    scene_end(&scene);
}

/* With room for three ranges nothing is lost: a step that cannot be carried out changes nothing. */
static void a_limit_on_ranges(void **state)
{
    (void)state;
    struct scene scene = {.state = shard_new(3)};
    struct shard_dataset spec = {.size = 100, .epochs = 1, .batch = 1};
    feed(&scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec});
    feed(&scene, (struct shard_event){.kind = SHARD_SERVE});
    joins(&scene, 1);
    joins(&scene, 2);
    wants(&scene, 1, 9);
    struct shard_part part = {1, {0, 0, 4, 1}};
    struct shard_event commit = {.kind = SHARD_COMMIT, .parts = &part, .part_count = 1};
    assert_int_equal(feed(&scene, commit), MUSTER_ETOOBIG);
    assert_int_equal(shard_held(scene.state, 1), 9);
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grants_come_from_the_front_in_whole_batches),
        cmocka_unit_test(the_last_batch_is_partial_and_then_it_ends),
        cmocka_unit_test(what_a_dead_worker_held_comes_first),
        cmocka_unit_test(who_waits_is_served_when_records_come_back),
        cmocka_unit_test(epochs_are_kept_apart),
        cmocka_unit_test(epochs_may_overlap),
        cmocka_unit_test(evaluation_is_added_when_it_is_due),
        cmocka_unit_test(one_name_is_one_data_set),
        cmocka_unit_test(a_data_set_that_shrinks),
        cmocka_unit_test(a_lease_that_runs_out),
        cmocka_unit_test(a_commit_is_all_or_nothing),
        cmocka_unit_test(whoever_holds_it_may_be_left_open),
        cmocka_unit_test(effects_are_bounded),
        cmocka_unit_test(a_lease_that_was_committed_in_part),
        cmocka_unit_test(requests_that_make_no_sense_are_refused),
        cmocka_unit_test(a_limit_on_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
