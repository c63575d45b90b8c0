/* The arbiter in small scenes: workers that die of what they compute, and the record that is named
 * at last, or set aside. */
#include "coordinator/scenes/fixture.h"

/* Lets a worker die. For every second worker the cause is reported later. */
static void dies(struct scene *scene, uint64_t who, enum arbiter_cause cause)
{
    bool later = who % 2;
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD,
                                       .incarnation = who,
                                       .cause = later ? ARBITER_CAUSE_PENDING : cause});
    if (later) {
        feed(scene,
             (struct arbiter_event){.kind = ARBITER_CAUSE, .incarnation = who, .cause = cause});
    }
}

/* One of two members has died: lets the other one continue with a new one. */
static void next_of_two(struct scene *scene, uint64_t left, uint64_t comes)
{
    reports(scene, left, 0, 0, 0, true);
    scene->sent_count = 0;
    declares(scene, comes, scene->plan);
    joins(scene, comes);
    reports(scene, left, 0, 0, 0, true);
}

/* The records that workers 2, 3 and 4 have at hand when they die, and the number of suspects after
 * that. */
struct deaths {
    struct {
        uint64_t first;
        uint32_t count, suspects;
    } of[3];
    const char *failure;
};

static void three_die(struct scene *scene, const struct deaths *deaths)
{
    for (uint64_t who = 2; who <= 4; who++) {
        has_at_hand(scene, 1, 0, 4);
        has_at_hand(scene, who, deaths->of[who - 2].first, deaths->of[who - 2].count);
        dies(scene, who, who == 3 ? ARBITER_CAUSE_UNKNOWN : ARBITER_CAUSE_OWN);
        if (who < 4) {
            assert_string_equal(scene->failure, "");
            next_of_two(scene, 1, who + 1);
            assert_int_equal(sent_to(scene, who + 1, WIRE_OPEN)->ranges,
                             deaths->of[who - 2].suspects);
        }
    }
    assert_string_equal(scene->failure, deaths->failure);
}

/* This includes a worker that does not compute parts of passes. */
static void what_workers_die_of_is_tried_in_halves_and_named(void **state)
{
    (void)state;
    static const struct deaths all[] = {
        {{{4, 4, 2}, {4, 2, 3}, {5, 1, 0}},
         "3 workers died, one after the other, of record 5 of data set \"mnist\", in epoch 1 of 1"},
        {{{4, 4, 2}, {6, 2, 3}, {6, 1, 0}},
         "3 workers died, one after the other, of record 6 of data set \"mnist\", in epoch 1 of 1"},
        {{{4, 4, 2}, {4, 4, 4}, {4, 4, 0}},
         "3 workers died, one after the other, of the same pass: records 4, 5, 6, 7 of data set "
         "\"mnist\", in epoch 1 of 1"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct scene *scene = planned_scene();
        three_die(scene, &all[i]);
        end_scene(scene);
    }
}

/* All workers are on other hosts: their ends are not seen, and no worker is left that could report
 * anything. */
static void who_dies_alone_on_another_host_died_of_its_pass(void **state)
{
    (void)state;
    static const struct {
        uint64_t who;
        uint32_t count;
    } deaths[] = {{1, 4}, {3, 2}, {4, 1}};
    struct scene *scene = planned_scene();
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    reports(scene, 1, 0, 0, 0, true);
    for (size_t i = 0; i < 3; i++) {
        uint64_t who = deaths[i].who, comes = i < 2 ? deaths[i + 1].who : 5;
        has_at_hand(scene, who, 4, deaths[i].count);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DISCONNECTED, .incarnation = who});
        feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = who});
        declares(scene, comes, scene->plan);
        joins(scene, comes);
        assert_int_equal(scene->failure[0] != 0, i == 2);
    }
    assert_non_null(strstr(scene->failure, "3 workers died, one after the other, of record 4"));
    end_scene(scene);
}

/* Ends the connections of a worker; the other member, 1, continues before the worker's end is
 * seen. */
static void is_left_out(struct scene *scene, uint64_t who)
{
    feed(scene, (struct arbiter_event){.kind = ARBITER_DISCONNECTED,
                                       .incarnation = who,
                                       .cause = ARBITER_CAUSE_PENDING});
    uint64_t generation = arbiter_generation(scene->arbiter);
    says(scene, 1,
         (struct wire_message){.kind = WIRE_REPORT,
                               .report = {.generation = generation,
                                          .lost = who,
                                          .ended = true,
                                          .loaded = true,
                                          .closed = true}});
    assert_int_equal(arbiter_generation(scene->arbiter), generation + 1);
}

static void is_explained(struct scene *scene, uint64_t who, enum arbiter_cause cause)
{
    scene->sent_count = 0;
    dies(scene, who, cause);
}

/* A stopped worker is killed by the workers that share its memory: they report the loss before its
 * end is seen. Its pass is blamed by the way it ended. The others compute the pass as a whole,
 * because parts would give other bits; if the pass is suspected, they begin again with the
 * suspects. */
static void who_is_left_out_before_its_end_is_seen_is_judged_by_its_end(void **state)
{
    (void)state;
    static const enum arbiter_cause causes[] = {ARBITER_CAUSE_OUTSIDE, ARBITER_CAUSE_OWN};
    for (size_t i = 0; i < 2; i++) {
        struct scene *scene = planned_scene();
        has_at_hand(scene, 2, 4, 4);
        is_left_out(scene, 2);
        assert_int_equal(scene->lost, 2);
        assert_int_equal(scene->reason, RENDEZVOUS_DIED);
        assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->ranges, 0);
        is_explained(scene, 2, causes[i]);
        assert_int_equal(sent_to(scene, 1, WIRE_CLOSE) != NULL, i == 1);
        reports(scene, 1, 0, 0, 0, i == 1);
        assert_int_equal(arbiter_generation(scene->arbiter), 2 + i);
        if (i == 1) {
            assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->ranges, 2);
        }
        next_of_two(scene, 1, 3);
        assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->ranges, 2 * i);
        end_scene(scene);
    }
}

/* The death was explained too late for the others to compute the parts. They die of the whole pass,
 * and it is not known which part of it has killed them. */
static void who_was_not_told_of_the_parts_does_not_name_them_all(void **state)
{
    (void)state;
    static const struct {
        uint64_t first;
        uint32_t count;
    } deaths[] = {{4, 4}, {4, 2}, {4, 2}, {5, 1}};
    struct scene *scene = planned_scene();
    for (size_t i = 0; i < 4; i++) {
        uint64_t who = i + 2;
        has_at_hand(scene, who, deaths[i].first, deaths[i].count);
        if (i == 1) {
            is_left_out(scene, who);
            declares(scene, who + 1, scene->plan);
            joins(scene, who + 1);
            reports(scene, 1, 0, 0, 0, true);
            has_at_hand(scene, who + 1, deaths[i + 1].first, deaths[i + 1].count);
            is_explained(scene, who, ARBITER_CAUSE_OWN);
            continue;
        }
        assert_string_equal(scene->failure, "");
        dies(scene, who, ARBITER_CAUSE_OWN);
        next_of_two(scene, 1, who + 1);
    }
    assert_string_equal(
        scene->failure,
        "3 workers died, one after the other, of record 5 of data set \"mnist\", in epoch 1 of 1");
    end_scene(scene);
}

/* A pass continues while its generation is closed and the next one is opened: a report of it
 * belongs to a generation whose members knew no parts. */
static void a_pass_of_the_generation_before_names_no_parts(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    has_at_hand(scene, 2, 4, 4);
    dies(scene, 2, ARBITER_CAUSE_OWN);
    next_of_two(scene, 1, 3);
    has_at_hand(scene, 3, 4, 2);
    is_left_out(scene, 3);
    declares(scene, 4, scene->plan);
    joins(scene, 4);
    reports(scene, 1, 0, 0, 0, true);
    uint64_t generation = arbiter_generation(scene->arbiter);
    is_explained(scene, 3, ARBITER_CAUSE_OWN);
    reports(scene, 1, 0, 0, 0, true);
    reports(scene, 4, 0, 0, 0, true);
    assert_int_equal(arbiter_generation(scene->arbiter), generation + 1);
    has_at_hand_in(scene, 4, generation, 4, 2);
    dies(scene, 4, ARBITER_CAUSE_OWN);
    assert_string_equal(scene->failure, "");
    next_of_two(scene, 1, 5);
    has_at_hand(scene, 5, 5, 1);
    dies(scene, 5, ARBITER_CAUSE_OWN);
    assert_string_equal(
        scene->failure,
        "3 workers died, one after the other, of record 5 of data set \"mnist\", in epoch 1 of 1");
    end_scene(scene);
}

/* The pass that the worker had at hand was too short to be reported, and the others have trained it
 * since. */
static void a_late_death_of_what_is_trained_blames_nothing(void **state)
{
    (void)state;
    for (int trained = 0; trained < 2; trained++) {
        struct scene *scene = planned_scene();
        is_left_out(scene, 2);
        if (trained) {
            assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
        }
        is_explained(scene, 2, ARBITER_CAUSE_OWN);
        assert_int_equal(sent_to(scene, 1, WIRE_CLOSE) != NULL, !trained);
        end_scene(scene);
    }
}

static void a_job_that_has_failed_says_so_to_all(void **state)
{
    (void)state;
    static const struct deaths deaths = {
        {{4, 4, 2}, {4, 2, 3}, {4, 1, 0}},
        "3 workers died, one after the other, of record 4 of data set \"mnist\", in epoch 1 of 1"};
    struct scene *scene = planned_scene();
    three_die(scene, &deaths);
    assert_string_equal(sent_to(scene, 1, WIRE_EXPELLED)->why, scene->failure);
    joins(scene, 5);
    assert_string_equal(sent_to(scene, 5, WIRE_EXPELLED)->why, scene->failure);
    scene->failure[0] = 0;
    begin(scene, scene->journaled); /* the failure is reported again */
    assert_non_null(strstr(scene->failure, "record 4"));
    assert_false(scene->served);
    end_scene(scene);
}

static void deaths_that_no_pass_is_blamed_for(void **state)
{
    (void)state;
    static const struct {
        enum arbiter_cause cause;
        bool at_hand, leaves;
    } deaths[] = {{ARBITER_CAUSE_OUTSIDE, true, false},
                  {ARBITER_CAUSE_UNKNOWN, true, true},
                  {ARBITER_CAUSE_UNKNOWN, false, false}};
    for (size_t i = 0; i < 3; i++) {
        struct scene *scene = planned_scene();
        for (uint64_t who = 2; who <= 5; who++) {
            has_at_hand(scene, who, 4, 4);
            has_at_hand(scene, who, 4, deaths[i].at_hand ? 4 : 0);
            if (deaths[i].leaves) {
                says(scene, who, (struct wire_message){.kind = WIRE_LEAVE});
            }
            dies(scene, who, deaths[i].cause);
            next_of_two(scene, 1, who + 1);
            assert_int_equal(sent_to(scene, who + 1, WIRE_OPEN)->ranges, 0);
        }
        assert_string_equal(scene->failure, "");
        end_scene(scene);
    }
}

/* The worker crashed before it could report its pass: the next workers report theirs. */
static void a_step_of_which_nothing_was_told_is_suspected(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    assert_int_equal(commits(scene, 2, 1, 0, 8), 0);
    dies(scene, 2, ARBITER_CAUSE_OWN);
    reports(scene, 1, 1, 0, 0, true);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->range.first, 8);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->range.count, 8);
    scene->sent_count = 0;
    assert_int_equal(commits(scene, 1, 2, 8, 8), 0); /* trained, so not poisonous */
    declares(scene, 3, mnist);
    joins(scene, 3);
    reports(scene, 1, 2, 0, 0, true);
    assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->ranges, 0);
    end_scene(scene);
}

static void a_worker_says_that_the_job_has_failed(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    assert_int_equal(says(scene, 2,
                          (struct wire_message){.kind = WIRE_FAIL,
                                                .fail.why = {"w: KeyError: 7\nTraceback", 24}}),
                     0);
    assert_string_equal(scene->failure, "w: KeyError: 7\nTraceback");
    assert_string_equal(sent_to(scene, 1, WIRE_EXPELLED)->why, scene->failure);
    assert_int_equal(scene->journal[scene->journaled - 1].kind, ENTRY_FAILURE);
    assert_false(scene->ended);
    end_scene(scene);
}

static void expect_aside(struct scene *scene, uint64_t left, uint64_t comes)
{
    next_of_two(scene, left, comes);
    assert_int_equal(sent_to(scene, comes, WIRE_OPEN)->asides, 1);
    assert_int_equal(sent_to(scene, comes, WIRE_OPEN)->aside, 5);
}

/* All members of later generations set the record aside, also after a restart, and with a
 * snapshot. */
static void a_record_is_set_aside_where_its_data_set_has_that_option(void **state)
{
    (void)state;
    static const struct deaths deaths = {{{4, 4, 2}, {4, 2, 3}, {5, 1, 0}}, ""};
    struct wire_dataset lenient = mnist;
    lenient.set_aside = true;
    struct scene *scene = scene_of_plan(lenient);
    three_die(scene, &deaths);
    assert_string_equal(scene->aside,
                        "record 5 is set aside: 3 workers died, one after the other, of record 5 "
                        "of data set \"mnist\", in epoch 1 of 1");
    expect_aside(scene, 1, 5);
    assert_int_equal(sent_to(scene, 5, WIRE_OPEN)->ranges,
                     2); /* 4, and 6 to 7: these are not trained */
    for (int compacted = 0; compacted < 2; compacted++) {
        begin(scene, scene->journaled);
        struct arbiter_aside aside;
        assert_true(arbiter_aside(scene->arbiter, 0, &aside));
        assert_true(aside.aside.deaths == 3 && !aside.leased);
        assert_false(arbiter_aside(scene->arbiter, 1, &aside));
        compacts(scene);
    }
    reports(scene, 1, 0, 0, 0, false);
    reports(scene, 5, 0, 0, 0, false);
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0); /* its position is committed with its step */
    assert_string_equal(scene->failure, "");
    end_scene(scene);
}

/* The third death is explained only when the others work again. */
static void a_record_that_is_named_late_is_set_aside_at_once(void **state)
{
    (void)state;
    struct wire_dataset lenient = mnist;
    lenient.set_aside = true;
    struct scene *scene = scene_of_plan(lenient);
    for (uint64_t who = 2; who <= 3; who++) {
        has_at_hand(scene, who, 4, who == 2 ? 4 : 2);
        dies(scene, who, ARBITER_CAUSE_OWN);
        next_of_two(scene, 1, who + 1);
    }
    has_at_hand(scene, 4, 5, 1);
    is_left_out(scene, 4);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->asides, 0);
    is_explained(scene, 4, ARBITER_CAUSE_OWN);
    assert_non_null(sent_to(scene, 1, WIRE_CLOSE));
    reports(scene, 1, 0, 0, 0, true);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->asides, 1);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->aside, 5);
    assert_string_equal(scene->failure, "");
    end_scene(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_workers_die_of_is_tried_in_halves_and_named),
        cmocka_unit_test(who_dies_alone_on_another_host_died_of_its_pass),
        cmocka_unit_test(who_is_left_out_before_its_end_is_seen_is_judged_by_its_end),
        cmocka_unit_test(who_was_not_told_of_the_parts_does_not_name_them_all),
        cmocka_unit_test(a_pass_of_the_generation_before_names_no_parts),
        cmocka_unit_test(a_late_death_of_what_is_trained_blames_nothing),
        cmocka_unit_test(a_job_that_has_failed_says_so_to_all),
        cmocka_unit_test(deaths_that_no_pass_is_blamed_for),
        cmocka_unit_test(a_step_of_which_nothing_was_told_is_suspected),
        cmocka_unit_test(a_worker_says_that_the_job_has_failed),
        cmocka_unit_test(a_record_is_set_aside_where_its_data_set_has_that_option),
        cmocka_unit_test(a_record_that_is_named_late_is_set_aside_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
