/* The cost of recoveries, and the rate of a job, from looks at made-up times. */
#include "base/testing/test.h"
#include "coordinator/server/pace.h"

#include <string.h>

enum { STEP_MS = 10 };

struct scene {
    struct pace pace;
    struct pace_look now;
};

static bool look(struct scene *s, int64_t after_ms)
{
    s->now.now_ms += after_ms;
    s->now.now_unix_ms += after_ms;
    return pace_look(&s->pace, &s->now);
}

static bool step(struct scene *s, int64_t after_ms)
{
    s->now.version++;
    return look(s, after_ms);
}

/* Begins a job and does some steps of generation 1. */
static void train(struct scene *s)
{
    *s = (struct scene){.now = {.now_ms = 1000, .now_unix_ms = 5000}};
    pace_begin(&s->pace, &s->now, -1);
    pace_note(&s->pace, PACE_JOINED, "a");
    s->now.generation = 1;
    s->now.is_open = true;
    assert_false(look(s, 1));
    for (int i = 0; i < 100; i++) {
        assert_false(step(s, STEP_MS));
    }
}

static void open_next(struct scene *s, int64_t after_ms)
{
    s->now.generation++;
    s->now.is_open = true;
    assert_false(look(s, after_ms));
}

static void a_loss_costs_what_passed_beyond_one_step(void **state)
{
    (void)state;
    struct scene s;
    train(&s);
    s.now.is_open = false;
    assert_false(look(&s, 900)); /* the loss was found late */
    pace_note(&s.pace, PACE_LOST, "b");
    open_next(&s, 30);
    assert_true(step(&s, STEP_MS));
    const struct pace_recovery *recovery = &s.pace.recoveries[0];
    assert_int_equal(s.pace.recovery_count, 1);
    assert_int_equal(recovery->ms, 930);
    assert_int_equal(recovery->kind, PACE_LOST);
    assert_string_equal(recovery->worker, "b");
    assert_int_equal(recovery->at_unix_ms, s.now.now_unix_ms);
    assert_false(step(&s, STEP_MS)); /* the recovery is over */
}

static void the_step_that_the_decision_commits_is_not_the_next_one(void **state)
{
    (void)state;
    struct scene s;
    train(&s);
    s.now.is_open = false;
    assert_false(look(&s, 5));
    pace_note(&s.pace, PACE_LOST, "b");
    s.now.version++;
    open_next(&s, 5);
    assert_int_equal(s.pace.recovery_count, 0);
    assert_true(step(&s, 20));
    assert_int_equal(s.pace.recoveries[0].ms, 20);
}

static void a_death_in_a_recovery_is_of_the_same_one(void **state)
{
    (void)state;
    struct scene s;
    train(&s);
    s.now.is_open = false;
    assert_false(look(&s, 10));
    pace_note(&s.pace, PACE_LOST, "b");
    open_next(&s, 10);
    s.now.is_open = false;
    assert_false(look(&s, 10));
    pace_note(&s.pace, PACE_JOINED, "d");
    pace_note(&s.pace, PACE_LOST, "c");
    open_next(&s, 10);
    assert_true(step(&s, 10));
    assert_int_equal(s.pace.recovery_count, 1);
    assert_string_equal(s.pace.recoveries[0].worker, "b");
    assert_int_equal(s.pace.recoveries[0].others, 1);
    assert_int_equal(s.pace.recoveries[0].ms, 40);
}

/* The generation is closed at the end of the current step, which continues until then. */
static void a_join_costs_what_passed_since_the_last_step(void **state)
{
    (void)state;
    struct scene s;
    train(&s);
    pace_note(&s.pace, PACE_JOINED, "d");
    s.now.is_open = false;
    assert_false(look(&s, 1));
    assert_false(step(&s, STEP_MS - 1));
    open_next(&s, 2);
    assert_true(step(&s, STEP_MS));
    assert_int_equal(s.pace.recoveries[0].kind, PACE_JOINED);
    assert_int_equal(s.pace.recoveries[0].ms, 2);
}

static void a_coordinator_was_away_until_it_hears_of_a_step(void **state)
{
    (void)state;
    struct scene s;
    train(&s);
    pace_begin(&s.pace, &s.now, 400);
    assert_false(look(&s, 100));
    s.now.version += 50;
    assert_true(look(&s, 0));
    assert_int_equal(s.pace.recoveries[0].kind, PACE_COORDINATOR);
    assert_int_equal(s.pace.recoveries[0].ms, 500);
    assert_false(step(&s, STEP_MS));
}

/* All workers were stopped together with the coordinator, as by muster suspend: other workers begin
 * with the checkpoint. */
static void where_no_worker_has_trained_meanwhile_nothing_is_said_of_that(void **state)
{
    (void)state;
    struct scene s;
    train(&s);
    size_t before = s.pace.recovery_count;
    pace_begin(&s.pace, &s.now, 400);
    s.now.is_open = false;
    assert_false(look(&s, 100));
    s.now.restored = true;
    open_next(&s, 10);
    (void)step(&s, STEP_MS);
    for (size_t i = before; i < s.pace.recovery_count; i++) {
        assert_int_not_equal(s.pace.recoveries[i].kind, PACE_COORDINATOR);
    }
}

/* The model of step 40 was read from a checkpoint. */
static void steps_that_are_done_again_are_counted_when_the_generation_opens(void **state)
{
    (void)state;
    struct scene s;
    train(&s);
    pace_note(&s.pace, PACE_LEFT, "a");
    s.now.is_open = false;
    assert_false(look(&s, 5));
    s.now.generation++;
    s.now.is_open = true;
    s.now.version = 40;
    assert_true(look(&s, 15));
    const struct pace_recovery *recovery = &s.pace.recoveries[0];
    assert_int_equal(recovery->kind, PACE_RESTORED);
    assert_int_equal(recovery->version, 40);
    assert_int_equal(recovery->lost_steps, 60);
    assert_int_equal(recovery->ms, 20);
    assert_true(step(&s, STEP_MS));
    assert_int_equal(s.pace.recovery_count, 2);
    assert_int_equal(s.pace.recoveries[1].kind, PACE_LEFT);
}

static void the_newest_recoveries_are_kept(void **state)
{
    (void)state;
    struct scene s;
    train(&s);
    for (int i = 0; i < 3 * PACE_RECOVERIES_KEPT; i++) {
        s.now.is_open = false;
        assert_false(look(&s, 0));
        open_next(&s, i);
        assert_true(step(&s, STEP_MS));
    }
    assert_int_equal(s.pace.recovery_count, PACE_RECOVERIES_KEPT);
    assert_int_equal(s.pace.recoveries[PACE_RECOVERIES_KEPT - 1].ms, 3 * PACE_RECOVERIES_KEPT - 1);
}

static void the_rate_is_that_of_the_last_seconds(void **state)
{
    (void)state;
    struct pace pace = {0};
    assert_true(pace_rate(&pace) == 0);
    for (int i = 0; i <= 100; i++) { /* 100 a second, then 400 */
        pace_sample(&pace, i * 250, (uint64_t)(i < 60 ? i * 25 : 60 * 25 + (i - 60) * 100));
    }
    assert_true(pace_rate(&pace) == 400);
    pace_sample(&pace, 30000, 0); /* back at a checkpoint: no rate below 0 */
    assert_true(pace_rate(&pace) == 0);
    assert_int_equal(pace_seconds_left(100, 300, 100), 3);
    assert_int_equal(pace_seconds_left(300, 300, 0), 0);
    assert_int_equal(pace_seconds_left(0, 300, 0), -1);
    assert_int_equal(pace_seconds_left(0, UINT64_MAX, 10), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_costs_what_passed_beyond_one_step),
        cmocka_unit_test(the_step_that_the_decision_commits_is_not_the_next_one),
        cmocka_unit_test(a_death_in_a_recovery_is_of_the_same_one),
        cmocka_unit_test(a_join_costs_what_passed_since_the_last_step),
        cmocka_unit_test(a_coordinator_was_away_until_it_hears_of_a_step),
        cmocka_unit_test(where_no_worker_has_trained_meanwhile_nothing_is_said_of_that),
        cmocka_unit_test(steps_that_are_done_again_are_counted_when_the_generation_opens),
        cmocka_unit_test(the_newest_recoveries_are_kept),
        cmocka_unit_test(the_rate_is_that_of_the_last_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
