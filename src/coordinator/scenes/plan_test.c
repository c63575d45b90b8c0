/* The arbiter in small scenes: planned data sets. Which worker declares them, which steps they
 * have, and jobs that no worker would continue. */
#include "coordinator/scenes/fixture.h"

static void the_first_declares_and_all_have_the_same(void **state)
{
    (void)state;
    struct scene *scene = new_scene_of(true);
    struct wire_dataset silent = mnist;
    silent.micro_batches = 0;
    declares(scene, 1, mnist);
    assert_int_equal(scene->journaled, 2);
    assert_int_equal(sent_to(scene, 1, WIRE_DATASET)->appended, 2);
    assert_int_equal(sent_to(scene, 1, WIRE_DATASET)->dataset.micro_batches, 2);
    assert_int_equal(sent_to(scene, 1, WIRE_DATASET)->dataset.seed, 9);
    declares(scene, 2, silent); /* it gets the number of the job */
    assert_int_equal(sent_to(scene, 2, WIRE_DATASET)->dataset.micro_batches, 2);
    assert_int_equal(scene->journaled, 2);
    declares(scene, 3, (struct wire_dataset){{"b", 1}, .records = 5, .epochs = 1, .batch = 1});
    assert_int_equal(sent_to(scene, 3, WIRE_DATASET)->dataset.micro_batches, 1);
    assert_int_equal(sent_to(scene, 3, WIRE_DATASET)->dataset.number, 1);
    begin(scene, scene->journaled);
    declares(scene, 4, silent); /* and after a restart */
    assert_int_equal(sent_to(scene, 4, WIRE_DATASET)->dataset.micro_batches, 2);
    assert_int_equal(sent_to(scene, 4, WIRE_DATASET)->dataset.number, 0);
    end_scene(scene);
}

static void another_data_set_is_refused_by_what_differs(void **state)
{
    (void)state;
    struct scene *scene = new_scene_of(true);
    struct wire_dataset wrong = mnist;
    declares(scene, 1, mnist);
    wrong.records = 23;
    declares(scene, 2, wrong);
    assert_non_null(sent_to(scene, 2, WIRE_REFUSED));
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why,
                           "\"mnist\" has records 23 here, and 22 in the job"));
    assert_int_equal(scene->hung_up, 2);
    wrong = mnist;
    wrong.micro_batches = 3;
    declares(scene, 2, wrong);
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why, "micro_batches 3 here, and 2"));
    wrong = (struct wire_dataset){{"c", 1}, .records = 1, .batch = UINT32_MAX, .micro_batches = 2};
    declares(scene, 2, wrong);
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why, "out of range"));
    wrong = (struct wire_dataset){{"c", 1}, .task = 99, .records = 1, .batch = 1};
    declares(scene, 2, wrong);
    assert_non_null(sent_to(scene, 2, WIRE_REFUSED));
    declares(scene, 2, mnist);
    assert_null(sent_to(scene, 2, WIRE_REFUSED));
    assert_int_equal(scene->hung_up, 0);
    end_scene(scene);
}

static void planned_steps_need_no_grant(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    assert_int_equal(sent_to(scene, 2, WIRE_ACK)->version, 1);
    asks(scene, 2, 4);
    assert_true(sent_to(scene, 2, WIRE_GRANT)->last);
    assert_int_equal(sent_to(scene, 2, WIRE_GRANT)->ranges, 0);
    begin(scene, scene->journaled);
    reports(scene, 1, 1, 0, 0, false);
    reports(scene, 2, 1, 0, 0, false);
    assert_int_equal(commits(scene, 2, 2, 8, 8), 0);
    assert_int_equal(commits(scene, 1, 3, 16, 6), 0);
    finishes(scene, 1);
    finishes(scene, 2);
    assert_true(scene->ended);
    end_scene(scene);
}

static void other_records_than_the_plan_are_a_contradiction(void **state)
{
    (void)state;
    static const struct shard_range wrong[] = {
        {.first = 8, .count = 8}, {.first = 0, .count = 4}, {.first = 0, .count = 16}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct scene *scene = planned_scene();
        size_t journaled = scene->journaled;
        assert_int_equal(commits(scene, 1, 1, wrong[i].first, wrong[i].count), MUSTER_EDATA);
        assert_non_null(strstr(scene->err.text, "not the records that the plan has next"));
        assert_int_equal(scene->journaled, journaled);
        assert_int_equal(scene->sent_count, 0);
        end_scene(scene);
    }
}

/* Two steps are lost with all members; the plan begins again after the checkpoint, also for a data
 * set that was declared later. */
static void a_plan_goes_back_to_the_checkpoint(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    struct wire_message saves = {
        .kind = WIRE_CHECKPOINT,
        .checkpoint = {.generation = 1, .version = 1, .path = {"model", 5}, .digest = {7}}};
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    declares(scene, 1, (struct wire_dataset){{"late", 4}, .records = 5, .epochs = 1, .batch = 5});
    assert_int_equal(says(scene, 1, saves), 0);
    assert_int_equal(commits(scene, 1, 2, 8, 8), 0);
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    declares(scene, 3, mnist);
    joins(scene, 3);
    assert_true(sent_to(scene, 3, WIRE_OPEN)->restore);
    assert_int_equal(commits(scene, 3, 2, 8, 8), 0);
    declares(scene, 3, (struct wire_dataset){{"late", 4}, .records = 5, .epochs = 1, .batch = 5});
    assert_int_equal(sent_to(scene, 3, WIRE_DATASET)->dataset.number, 1);
    begin(scene, scene->journaled);
    assert_int_equal(arbiter_version(scene->arbiter), 2);
    end_scene(scene);
}

static void breaks_off(struct scene *scene, uint64_t who)
{
    says(scene, who, (struct wire_message){.kind = WIRE_LEAVE, .leave.broken_off = true});
}

/* The programs of the workers have ended their loops: no worker would ever train the rest. */
static void a_job_of_which_all_workers_break_off_has_failed(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    breaks_off(scene, 1);
    reports(scene, 1, 1, 0, 0, true);
    reports(scene, 2, 1, 0, 0, true);
    assert_int_equal(scene->lost, 1);
    assert_string_equal(scene->failure, ""); /* the other one continues */
    breaks_off(scene, 2);
    reports(scene, 2, 1, 0, 0, true);
    assert_string_equal(scene->failure,
                        "all workers have ended their loops by themselves, and 14 of 22 records "
                        "are not trained: to train less, ask for fewer epochs");
    begin(scene, scene->journaled);
    assert_false(scene->served);
    end_scene(scene);
}

/* A worker that was killed comes back, one that was asked to leave has a successor, and one that
 * waits continues. */
static void a_job_goes_on_where_another_may_come(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct scene *scene = planned_scene();
        assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
        if (i == 2) {
            declares(scene, 3, mnist);
            joins(scene, 3);
        }
        breaks_off(scene, 1);
        if (i == 1) {
            says(scene, 2, (struct wire_message){.kind = WIRE_LEAVE});
        } else {
            feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        }
        reports(scene, 1, 1, 0, 0, true);
        reports(scene, 2, 1, 0, 0, true);
        assert_string_equal(scene->failure, "");
        if (i < 2) {
            declares(scene, 3, mnist);
            joins(scene, 3);
        }
        assert_int_equal(arbiter_generation(scene->arbiter), 2);
        end_scene(scene);
    }
}

static void people_are_told_who_was_lost_and_how_far_it_is(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    struct arbiter_figures figures;
    assert_int_equal(scene->opened, 1);
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    reports(scene, 1, 1, 0, 0, true);
    assert_int_equal(scene->opened, 2);
    assert_int_equal(scene->lost, 2);
    assert_int_equal(scene->reason, RENDEZVOUS_DIED);
    assert_string_equal(arbiter_why(scene->reason), "its process has ended");
    arbiter_figures(scene->arbiter, &figures);
    assert_int_equal(figures.generation, 2);
    assert_int_equal(figures.members, 1);
    assert_int_equal(figures.version, 1);
    assert_int_equal(figures.epoch, 0);
    assert_int_equal(figures.epochs, 1);
    assert_int_equal(figures.records_done, 8);
    assert_int_equal(figures.records, 22);
    end_scene(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_declares_and_all_have_the_same),
        cmocka_unit_test(another_data_set_is_refused_by_what_differs),
        cmocka_unit_test(planned_steps_need_no_grant),
        cmocka_unit_test(other_records_than_the_plan_are_a_contradiction),
        cmocka_unit_test(a_plan_goes_back_to_the_checkpoint),
        cmocka_unit_test(a_job_of_which_all_workers_break_off_has_failed),
        cmocka_unit_test(a_job_goes_on_where_another_may_come),
        cmocka_unit_test(people_are_told_who_was_lost_and_how_far_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
