/* The arbiter in small scenes: a limit of steps, which ends a job in the middle of an epoch. */
#include "coordinator/scenes/fixture.h"

/* Makes a scene of two members, and a coordinator with a limit in its options: the journal has the
 * limit from then on. */
static struct scene *limited_scene(uint64_t steps)
{
    max_steps = steps;
    struct scene *scene = planned_scene();
    max_steps = 0;
    assert_int_equal(sent_to(scene, 2, WIRE_OPEN)->members, 2);
    return scene;
}

/* The job does two of its three steps; the coordinator is started again between them, with a
 * journal that is compacted and with one that is not. */
static void a_limit_ends_the_job_in_the_middle_of_an_epoch(void **state)
{
    (void)state;
    for (int compacted = 0; compacted < 2; compacted++) {
        struct scene *scene = limited_scene(2);
        struct arbiter_figures figures;
        assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
        assert_int_equal(scene->journal[0].kind, ENTRY_MAX_STEPS);
        if (compacted) {
            compacts(scene);
        }
        begin(scene, scene->journaled);
        declares(scene, 1, mnist);
        assert_int_equal(sent_to(scene, 1, WIRE_DATASET)->dataset.max_steps, 2);
        reports(scene, 1, 1, 0, 0, false);
        reports(scene, 2, 1, 0, 0, false);
        arbiter_figures(scene->arbiter, &figures);
        assert_int_equal(figures.records, 16);
        assert_int_equal(figures.records_asked, 22);
        assert_int_equal(figures.max_steps, 2);
        assert_int_equal(commits(scene, 1, 2, 8, 8), 0);
        begin(scene, scene->journaled); /* the log has all steps already */
        reports(scene, 1, 2, 0, 0, false);
        reports(scene, 2, 2, 0, 0, false);
        finishes(scene, 1);
        assert_false(scene->ended);
        finishes(scene, 2);
        assert_true(scene->ended);
        assert_string_equal(scene->failure, "");
        end_scene(scene);
    }
}

static void a_limit_beyond_the_last_epoch_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t steps = 3; steps < 5; steps++) {
        struct scene *scene = limited_scene(steps);
        struct arbiter_figures figures;
        arbiter_figures(scene->arbiter, &figures);
        assert_int_equal(figures.records, 22);
        assert_int_equal(figures.records_asked, 22);
        assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
        assert_int_equal(commits(scene, 1, 2, 8, 8), 0);
        assert_int_equal(commits(scene, 1, 3, 16, 6), 0);
        finishes(scene, 1);
        finishes(scene, 2);
        assert_true(scene->ended);
        end_scene(scene);
    }
}

static void a_step_beyond_the_limit_is_a_contradiction(void **state)
{
    (void)state;
    struct scene *scene = limited_scene(1);
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    size_t journaled = scene->journaled;
    assert_int_equal(commits(scene, 1, 2, 8, 8), MUSTER_EDATA);
    assert_string_equal(scene->err.text, "step 2 cannot count: the job ends with step 1");
    assert_int_equal(scene->journaled, journaled);
    end_scene(scene);
}

/* One of two members dies in the last step. If the other one was prepared, the step counts; if not,
 * it does the step alone. */
static void the_generation_changes_at_the_last_step(void **state)
{
    (void)state;
    static const struct shard_range last = {.first = 8, .count = 8};
    static const struct wire_step step = {.version = 2, .ranges = {&last, 1}};
    for (uint32_t prepared = 0; prepared < 2; prepared++) {
        struct scene *scene = limited_scene(2);
        assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        const struct wire_message report = {.kind = WIRE_REPORT,
                                            .report = {.generation = 1,
                                                       .version = 1,
                                                       .loaded = true,
                                                       .closed = true,
                                                       .prepared = {&step, prepared}}};
        assert_int_equal(says(scene, 1, report), 0);
        assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->version, 1 + prepared);
        if (!prepared) {
            assert_int_equal(commits(scene, 1, 2, 8, 8), 0);
        }
        assert_int_equal(arbiter_version(scene->arbiter), 2);
        finishes(scene, 1);
        assert_true(scene->ended);
        assert_string_equal(scene->failure, "");
        end_scene(scene);
    }
}

/* All members die after the last step, before they have ended: the log goes back, and the limit
 * still holds. */
static void undone_steps_do_not_count(void **state)
{
    (void)state;
    struct scene *scene = limited_scene(2);
    struct wire_message saves = {
        .kind = WIRE_CHECKPOINT,
        .checkpoint = {.generation = 1, .version = 1, .path = {"model", 5}, .digest = {7}}};
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    assert_int_equal(says(scene, 1, saves), 0);
    assert_int_equal(commits(scene, 1, 2, 8, 8), 0);
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    declares(scene, 3, mnist);
    assert_int_equal(sent_to(scene, 3, WIRE_DATASET)->dataset.max_steps, 2);
    joins(scene, 3);
    assert_true(sent_to(scene, 3, WIRE_OPEN)->restore);
    assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->version, 1);
    assert_false(scene->ended);
    assert_int_equal(commits(scene, 3, 2, 8, 8), 0);
    finishes(scene, 3);
    assert_true(scene->ended);
    assert_int_equal(arbiter_version(scene->arbiter), 2);
    end_scene(scene);
}

/* A limit that is given again is accepted if it is the same. */
static void the_limit_of_a_journal_cannot_be_another(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, then;
        const char *why;
    } cases[] = {{2, 2, ""}, {2, 3, "ends with step 2, and"}, {0, 3, "ends with its last epoch"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = limited_scene(cases[i].first);
        max_steps = cases[i].then;
        int r = try_begin(scene, scene->journaled);
        max_steps = 0;
        assert_int_equal(r, *cases[i].why ? MUSTER_EINVAL : 0);
        assert_non_null(strstr(scene->err.text, cases[i].why));
        end_scene(scene);
    }
}

/* A changed journal may have no number, or a second one. */
static void a_limit_is_one_number(void **state)
{
    (void)state;
    static const uint8_t seven[8] = {7}, none[8] = {0};
    struct scene *scene = new_scene_of(true);
    for (int i = 0; i < 3; i++) {
        const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                            .record = ENTRY_MAX_STEPS,
                                            .bytes = i == 0 ? none : seven,
                                            .count = 8};
        const struct arbiter_options options = {
            .sizes = {1, 4, 2}, .peers = 8, .lease_ms = SHARD_LEASE_MS};
        struct arbiter *another = NULL;
        assert_int_equal(arbiter_new(&options, &another, &scene->err), 0);
        int r = arbiter_step(another, &event, &scene->effects, &scene->err);
        if (i == 2) {
            assert_int_equal(r, 0);
            r = arbiter_step(another, &event, &scene->effects, &scene->err);
        }
        assert_int_equal(r, i == 1 ? 0 : MUSTER_EDATA);
        arbiter_free(another);
    }
    end_scene(scene);
}

static void a_limit_comes_before_all_steps(void **state)
{
    (void)state;
    static const uint8_t seven[8] = {7};
    struct scene *scene = planned_scene();
    const struct arbiter_options options = {
        .sizes = {1, 4, 2}, .peers = 8, .lease_ms = SHARD_LEASE_MS};
    struct arbiter *another = NULL;
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    assert_int_equal(arbiter_new(&options, &another, &scene->err), 0);
    for (size_t i = 0; i <= scene->journaled; i++) {
        struct arbiter_event event = {
            .kind = ARBITER_REPLAY, .record = ENTRY_MAX_STEPS, .bytes = seven, .count = 8};
        if (i < scene->journaled) {
            event.record = scene->journal[i].kind;
            event.bytes = scene->journal[i].bytes;
            event.count = scene->journal[i].count;
        }
        assert_int_equal(arbiter_step(another, &event, &scene->effects, &scene->err),
                         i < scene->journaled ? 0 : MUSTER_EDATA);
    }
    arbiter_free(another);
    end_scene(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_ends_the_job_in_the_middle_of_an_epoch),
        cmocka_unit_test(a_limit_beyond_the_last_epoch_changes_nothing),
        cmocka_unit_test(a_step_beyond_the_limit_is_a_contradiction),
        cmocka_unit_test(the_generation_changes_at_the_last_step),
        cmocka_unit_test(undone_steps_do_not_count),
        cmocka_unit_test(the_limit_of_a_journal_cannot_be_another),
        cmocka_unit_test(a_limit_is_one_number),
        cmocka_unit_test(a_limit_comes_before_all_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
