/* Planned data sets: a commit has the records of the next step, all of them and no others. */
#include "shard/scene_test.h"

#include <muster/err.h>

#include <stdlib.h>

/* 22 records: steps of 8, 8 and 6. */
static const struct shard_dataset planned = {
    .size = 22, .epochs = 2, .batch = 4, .micro_batches = 2};

static void steps_follow_each_other_through_the_epochs(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_progress progress;
    scene_start(&scene, &planned);
    commits(&scene, SHARD_ANY_OWNER, 0, 8);
    assert_effects(&scene, "");
    commits(&scene, SHARD_ANY_OWNER, 8, 8);
    assert_effects(&scene, "");
    commits(&scene, SHARD_ANY_OWNER, 16, 6);
    assert_effects(&scene, "epoch done");
    of_part(&scene, SHARD_COMMIT, SHARD_ANY_OWNER, (struct shard_range){.epoch = 1, .count = 8});
    assert_effects(&scene, "");
    assert_true(shard_progress(scene.state, 0, &progress));
    assert_int_equal(progress.epoch, 1);
    assert_int_equal(progress.epoch_done, 8);
    scene_end(&scene);
}

static void a_step_may_come_in_pieces(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_part parts[2] = {{0, {.first = 0, .count = 4}}, {0, {.first = 4, .count = 4}}};
    scene_start(&scene, &planned);
    feed(&scene, (struct shard_event){.kind = SHARD_COMMIT, .parts = parts, .part_count = 2});
    assert_effects(&scene, "");
    commits(&scene, SHARD_ANY_OWNER, 8, 8);
    assert_effects(&scene, "");
    scene_end(&scene);
}

static void a_step_without_records_is_refused(void **state)
{
    (void)state;
    struct scene scene;
    scene_start(&scene, &planned);
    feed(&scene, (struct shard_event){.kind = SHARD_COMMIT});
    assert_int_equal(scene.effects.count, 1);
    assert_int_equal(scene.effects.list[0].kind, SHARD_REFUSED);
    assert_int_equal(scene.effects.list[0].reason, SHARD_UNPLANNED);
    commits(&scene, SHARD_ANY_OWNER, 0, 8);
    assert_effects(&scene, "");
    scene_end(&scene);
}

/* Nothing of a refused step is done: the right step can still follow. */
static void other_records_than_the_next_are_refused(void **state)
{
    (void)state;
    static const struct shard_range wrong[] = {
        {.first = 8, .count = 8},  {.first = 0, .count = 4}, {.first = 0, .count = 9},
        {.first = 0, .count = 22}, {.first = 1, .count = 8}, {.epoch = 1, .count = 8},
        {.first = 0, .count = 0},  {.epoch = 2, .count = 8},
    };
    struct scene scene;
    scene_start(&scene, &planned);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        of_part(&scene, SHARD_COMMIT, SHARD_ANY_OWNER, wrong[i]);
        assert_int_equal(scene.effects.count, 1);
        assert_int_equal(scene.effects.list[0].kind, SHARD_REFUSED);
        assert_int_equal(scene.effects.list[0].reason, SHARD_UNPLANNED);
    }
    struct shard_part gap[2] = {{0, {.first = 0, .count = 4}}, {0, {.first = 8, .count = 4}}};
    feed(&scene, (struct shard_event){.kind = SHARD_COMMIT, .parts = gap, .part_count = 2});
    assert_effects(&scene, "refused 0:8-11");
    commits(&scene, SHARD_ANY_OWNER, 0, 8);
    assert_effects(&scene, "");
    commits(&scene, SHARD_ANY_OWNER, 0, 8); /* the second time */
    assert_effects(&scene, "refused 0:0-7");
    scene_end(&scene);
}

/* micro_batches is for each worker: the generation decides how many a step has. */
static void a_step_has_whole_micro_batches(void **state)
{
    (void)state;
    struct shard_dataset growing = planned;
    struct scene scene;
    growing.per_worker = true;
    scene_start(&scene, &growing);
    commits(&scene, SHARD_ANY_OWNER, 0, 4);
    assert_effects(&scene, "");
    commits(&scene, SHARD_ANY_OWNER, 4, 6);
    assert_effects(&scene, "refused 0:4-9");
    commits(&scene, SHARD_ANY_OWNER, 8, 4);
    assert_effects(&scene, "refused 0:8-11");
    commits(&scene, SHARD_ANY_OWNER, 4, 12);
    assert_effects(&scene, "");
    commits(&scene, SHARD_ANY_OWNER, 16, 8);
    assert_effects(&scene, "refused 0:16-23");
    commits(&scene, SHARD_ANY_OWNER, 16, 6);
    assert_effects(&scene, "epoch done");
    scene_end(&scene);
}

static void what_is_planned_is_not_granted(void **state)
{
    (void)state;
    struct scene scene;
    scene_start(&scene, &planned);
    joins(&scene, 1);
    wants(&scene, 1, 4);
    assert_effects(&scene, "refused 1");
    feed(&scene, (struct shard_event){.kind = SHARD_EXTEND, .count = 1});
    assert_effects(&scene, "refused");
    feed(&scene, (struct shard_event){.kind = SHARD_SHRINK, .count = 1});
    assert_effects(&scene, "refused");
    scene_end(&scene);
}

static void a_plan_is_the_same_for_all(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = planned;
    scene_start(&scene, &planned);
    feed(&scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec});
    assert_effects(&scene, "added");
    spec.per_worker = true;
    feed(&scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec});
    assert_effects(&scene, "refused");
    spec = (struct shard_dataset){.name = "c", .size = 1, .batch = 1, .per_worker = true};
    feed(&scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec});
    assert_effects(&scene, "refused"); /* it is not planned */
    spec = planned;
    spec.micro_batches = 4;
    feed(&scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec});
    assert_effects(&scene, "refused");
    spec = (struct shard_dataset){
        .name = "b", .size = 1, .batch = UINT32_MAX, .micro_batches = 2}; /* of one step */
    feed(&scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec});
    assert_effects(&scene, "refused");
    scene_end(&scene);
}

static void comes_back(const struct shard_dataset *spec, uint8_t version)
{
    struct scene scene;
    struct shard_state *restored = NULL;
    struct shard_progress progress;
    scene_start(&scene, spec);
    commits(&scene, SHARD_ANY_OWNER, 0, 8);
    size_t bound = shard_snapshot_bound(scene.state);
    uint8_t *bytes = malloc(bound);
    assert_non_null(bytes);
    size_t size = shard_snapshot(scene.state, bytes, bound);
    assert_int_equal(bytes[0], version); /* the older format, if it suffices */
    assert_int_equal(shard_restore(bytes, size, 0, &restored), 0);
    free(bytes);
    shard_free(scene.state);
    scene.state = restored;
    commits(&scene, SHARD_ANY_OWNER, 0, 8);
    assert_effects(&scene, "refused 0:0-7");
    commits(&scene, SHARD_ANY_OWNER, 8, 8);
    assert_effects(&scene, "");
    assert_true(shard_progress(scene.state, 0, &progress));
    assert_int_equal(progress.dataset.per_worker, spec->per_worker);
    scene_end(&scene);
}

static void a_plan_comes_back_from_a_snapshot(void **state)
{
    (void)state;
    struct shard_dataset growing = planned;
    growing.per_worker = true;
    comes_back(&planned, 2);
    comes_back(&growing, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_each_other_through_the_epochs),
        cmocka_unit_test(a_step_may_come_in_pieces),
        cmocka_unit_test(a_step_without_records_is_refused),
        cmocka_unit_test(other_records_than_the_next_are_refused),
        cmocka_unit_test(a_step_has_whole_micro_batches),
        cmocka_unit_test(what_is_planned_is_not_granted),
        cmocka_unit_test(a_plan_is_the_same_for_all),
        cmocka_unit_test(a_plan_comes_back_from_a_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
