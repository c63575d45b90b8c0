/* The arbiter in small scenes: steps whose size follows the number of workers. */
#include "coordinator/scenes/fixture.h"

/* 40 records, two for each worker and step. */
static const struct wire_dataset growing = {.name = {"mnist", 5},
                                            .records = 40,
                                            .epochs = 1,
                                            .batch = 2,
                                            .micro_batches = 1,
                                            .per_worker = true};

static void opens(const struct scene *scene, uint64_t who, struct shard_anchor due)
{
    const struct sent *open = sent_to(scene, who, WIRE_OPEN);
    assert_non_null(open);
    assert_int_equal(open->version, due.version);
    assert_int_equal(open->anchor.version, due.version);
    assert_int_equal(open->anchor.epoch, due.epoch);
    assert_int_equal(open->anchor.position, due.position);
    assert_int_equal(open->anchor.next, due.next);
    assert_int_equal(open->anchor.later, due.later);
}

/* Lets another worker join a job that has reached that version. */
static void comes(struct scene *scene, uint64_t who, const uint64_t *members, size_t count,
                  uint64_t version)
{
    declares(scene, who, growing);
    joins(scene, who);
    for (size_t i = 0; i < count; i++) {
        reports(scene, members[i], version, 0, 0, true);
    }
}

/* Starts the coordinator again, with the journal as it is or compacted: the generation's members
 * get the same OPEN. */
static void goes_on_after_a_restart(struct scene *scene, bool compacted, uint64_t who,
                                    struct shard_anchor due)
{
    if (compacted) {
        compacts(scene);
    }
    begin(scene, scene->journaled);
    declares(scene, who, growing);
    joins(scene, who);
    opens(scene, who, due);
}

static void a_step_has_as_many_records_as_its_workers_take(void **state)
{
    (void)state;
    for (int compacted = 0; compacted < 2; compacted++) {
        struct scene *scene = scene_of_plan(growing);
        opens(scene, 2, (struct shard_anchor){.next = 2, .later = 2});
        goes_on_after_a_restart(scene, compacted, 2, (struct shard_anchor){.next = 2, .later = 2});
        assert_int_equal(commits(scene, 1, 1, 0, 4), 0);
        comes(scene, 3, (uint64_t[]){1, 2}, 2, 1);
        const struct shard_anchor grown = {.version = 1, .position = 4, .next = 2, .later = 3};
        opens(scene, 3, grown);
        goes_on_after_a_restart(scene, compacted, 3, grown);
        assert_int_equal(commits(scene, 1, 2, 4, 4), 0);
        goes_on_after_a_restart(scene, compacted, 3, grown);
        assert_int_equal(commits(scene, 1, 3, 8, 6), 0);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 3});
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        reports(scene, 1, 3, 0, 0, true);
        const struct shard_anchor alone = {.version = 3, .position = 14, .next = 3, .later = 1};
        opens(scene, 1, alone);
        assert_int_equal(commits(scene, 1, 4, 14, 6), 0);
        for (uint64_t v = 5; v <= 14; v++) {
            assert_int_equal(commits(scene, 1, v, 20 + (v - 5) * 2, 2), 0);
        }
        finishes(scene, 1);
        assert_true(scene->ended);
        end_scene(scene);
    }
}

static void a_step_of_another_size_is_a_contradiction(void **state)
{
    (void)state;
    static const uint32_t wrong[] = {2, 6, 40};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct scene *scene = scene_of_plan(growing);
        size_t journaled = scene->journaled;
        assert_int_equal(commits(scene, 1, 1, 0, wrong[i]), MUSTER_EDATA);
        assert_non_null(strstr(scene->err.text, "by the workers of its generation it has 4"));
        assert_int_equal(scene->journaled, journaled);
        end_scene(scene);
    }
}

/* All members that are left have prepared the step: the record of the next generation has it, with
 * the sizes of the generation before. */
static void the_step_that_a_generation_commits_is_of_the_one_before(void **state)
{
    (void)state;
    struct scene *scene = scene_of_plan(growing);
    const struct shard_range range = {.count = 4};
    const struct wire_step step = {.version = 1, .ranges = {&range, 1}};
    const struct wire_message prepared = {
        .kind = WIRE_REPORT,
        .report = {
            .generation = 1, .lost = 2, .closed = true, .loaded = true, .prepared = {&step, 1}}};
    const struct shard_anchor alone = {.version = 1, .position = 4, .next = 2, .later = 1};
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    assert_int_equal(says(scene, 1, prepared), 0);
    opens(scene, 1, alone);
    goes_on_after_a_restart(scene, false, 1, alone);
    assert_int_equal(arbiter_version(scene->arbiter), 1);
    assert_int_equal(commits(scene, 1, 2, 4, 4), 0);
    assert_int_equal(commits(scene, 1, 3, 8, 2), 0);
    end_scene(scene);
}

/* This is so also for a checkpoint before the newest one. No member has begun with the step after
 * the checkpoint. */
static void who_begins_from_a_checkpoint_takes_its_own_number(void **state)
{
    (void)state;
    for (int compacted = 0; compacted < 2; compacted++) {
        struct scene *scene = scene_of_plan(growing);
        struct wire_message saves = {
            .kind = WIRE_CHECKPOINT,
            .checkpoint = {.generation = 1, .version = 2, .path = {"model", 5}, .digest = {7}}};
        for (uint64_t v = 1; v <= 3; v++) {
            assert_int_equal(commits(scene, 1, v, (v - 1) * 4, 4), 0);
        }
        assert_int_equal(says(scene, 1, saves), 0);
        saves.checkpoint.version = 3;
        assert_int_equal(says(scene, 1, saves), 0);
        if (compacted) {
            compacts(scene);
            begin(scene, scene->journaled);
        }
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        declares(scene, 3, growing);
        joins(scene, 3);
        opens(scene, 3, (struct shard_anchor){.version = 3, .position = 12, .next = 1, .later = 1});
        const struct wire_message unreadable = {
            .kind = WIRE_CHECKPOINT_FAILED,
            .checkpoint_failed = {.generation = 2, .version = 3, .reading = true}};
        assert_int_equal(says(scene, 3, unreadable), 0);
        const struct wire_message closed = {.kind = WIRE_REPORT,
                                            .report = {.generation = 2, .version = 3, .closed = 1}};
        assert_int_equal(says(scene, 3, closed), 0);
        const struct shard_anchor older = {.version = 2, .position = 8, .next = 1, .later = 1};
        opens(scene, 3, older);
        goes_on_after_a_restart(scene, compacted, 3, older);
        assert_int_equal(commits(scene, 3, 3, 8, 2), 0);
        end_scene(scene);
    }
}

static void who_counts_micro_batches_otherwise_is_refused(void **state)
{
    (void)state;
    struct scene *scene = new_scene_of(true);
    struct wire_dataset other = growing;
    declares(scene, 1, growing);
    assert_true(sent_to(scene, 1, WIRE_DATASET)->dataset.per_worker);
    other.per_worker = false;
    declares(scene, 2, other);
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why,
                           "micro_batches_per_worker 0 here, and 1 in the job"));
    other.micro_batches = 0; /* it does not set the number: the job's number holds */
    declares(scene, 2, other);
    assert_true(sent_to(scene, 2, WIRE_DATASET)->dataset.per_worker);
    other = (struct wire_dataset){{"b", 1}, .records = 5, .epochs = 1, .batch = 1};
    declares(scene, 2, other);
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why, "no other data set"));
    end_scene(scene);
    scene = planned_scene();
    other.per_worker = true;
    other.micro_batches = 1;
    declares(scene, 2, other);
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why, "no other data set"));
    end_scene(scene);
}

/* The anchor is only in entries of a growing data set: the other entries are as they were
 * before. */
static void a_job_of_steps_that_are_alike_has_no_anchor(void **state)
{
    (void)state;
    enum { DATASET_BYTES = SHARD_NAME_BYTES + 9 * 8 };
    struct scene *scene = planned_scene();
    assert_int_equal(sent_to(scene, 2, WIRE_OPEN)->anchor.later, 0);
    assert_int_equal(scene->journal[1].kind, ENTRY_DATASET);
    assert_int_equal(scene->journal[1].count, DATASET_BYTES);
    end_scene(scene);
    scene = scene_of_plan(growing);
    assert_int_equal(scene->journal[1].count, DATASET_BYTES + 8);
    scene->journal[1].bytes[DATASET_BYTES] = 2; /* the number is 1, or absent */
    struct shard_dataset spec;
    assert_int_equal(entry_read_dataset(scene->journal[1].bytes, DATASET_BYTES + 8, &spec, NULL),
                     MUSTER_EDATA);
    end_scene(scene);
}

/* The number of records is that of the limit's steps if no worker joins or leaves. */
static void a_limit_of_steps_counts_the_records_of_this_generation(void **state)
{
    (void)state;
    struct arbiter_figures figures;
    max_steps = 4;
    struct scene *scene = scene_of_plan(growing);
    max_steps = 0;
    arbiter_figures(scene->arbiter, &figures);
    assert_int_equal(figures.records, 16);
    assert_int_equal(commits(scene, 1, 1, 0, 4), 0);
    comes(scene, 3, (uint64_t[]){1, 2}, 2, 1);
    arbiter_figures(scene->arbiter, &figures);
    assert_int_equal(figures.records_done, 4);
    assert_int_equal(figures.records, 4 + 4 + 6 + 6);
    assert_int_equal(figures.records_asked, 40);
    end_scene(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_has_as_many_records_as_its_workers_take),
        cmocka_unit_test(a_step_of_another_size_is_a_contradiction),
        cmocka_unit_test(the_step_that_a_generation_commits_is_of_the_one_before),
        cmocka_unit_test(who_begins_from_a_checkpoint_takes_its_own_number),
        cmocka_unit_test(who_counts_micro_batches_otherwise_is_refused),
        cmocka_unit_test(a_job_of_steps_that_are_alike_has_no_anchor),
        cmocka_unit_test(a_limit_of_steps_counts_the_records_of_this_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
