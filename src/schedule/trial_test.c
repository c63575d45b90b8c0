/* The faster way is found, whichever it is, and found again when it changes. */
#include "schedule/trial.h"

#include "base/testing/test.h"

/* Makes calls that take these times in the two ways. Returns how many of them took way 1. */
static int run(struct schedule_trial *trial, int calls, uint64_t first_ns, uint64_t second_ns)
{
    int seconds = 0;
    for (int i = 0; i < calls; i++) {
        int way = schedule_trial_choose(trial);
        seconds += way;
        schedule_trial_note(trial, way, way == 1 ? second_ns : first_ns);
    }
    return seconds;
}

static void both_are_taken_first_and_then_the_faster_one(void **state)
{
    (void)state;
    struct schedule_trial trial = {0};
    assert_int_equal(run(&trial, 2 * SCHEDULE_TRIAL_EACH, 100, 90), SCHEDULE_TRIAL_EACH);
    assert_int_equal(run(&trial, SCHEDULE_TRIAL_AGAIN / 2, 100, 90), SCHEDULE_TRIAL_AGAIN / 2);
    struct schedule_trial other = {0};
    run(&other, 2 * SCHEDULE_TRIAL_EACH, 90, 100);
    assert_int_equal(run(&other, SCHEDULE_TRIAL_AGAIN / 2, 90, 100), 0);
}

static void the_slower_one_is_tried_again_once_in_a_while(void **state)
{
    (void)state;
    struct schedule_trial trial = {0};
    run(&trial, 2 * SCHEDULE_TRIAL_EACH, 90, 100);
    int seconds = run(&trial, 20 * SCHEDULE_TRIAL_AGAIN, 90, 100);
    assert_in_range(seconds, 15 * SCHEDULE_TRIAL_EACH, 21 * SCHEDULE_TRIAL_EACH);
}

static void what_has_become_faster_is_found(void **state)
{
    (void)state;
    struct schedule_trial trial = {0};
    run(&trial, 1000, 90, 100);
    run(&trial, 3 * SCHEDULE_TRIAL_AGAIN, 90, 45);
    int seconds = run(&trial, 10 * SCHEDULE_TRIAL_AGAIN, 90, 45);
    assert_true(seconds > 9 * SCHEDULE_TRIAL_AGAIN);
    run(&trial, 3 * SCHEDULE_TRIAL_AGAIN, 90, 200);
    assert_true(run(&trial, 10 * SCHEDULE_TRIAL_AGAIN, 90, 200) < SCHEDULE_TRIAL_AGAIN);
}

/* Such long calls occur when ranks come late. */
static void long_calls_among_them_change_nothing(void **state)
{
    (void)state;
    struct schedule_trial trial = {0};
    run(&trial, 2 * SCHEDULE_TRIAL_EACH, 90, 100);
    int seconds = 0;
    for (int i = 0; i < 20 * SCHEDULE_TRIAL_AGAIN; i++) {
        int way = schedule_trial_choose(&trial);
        seconds += way;
        schedule_trial_note(&trial, way, (way == 1 ? 100U : 90U) * (i % 3 == 0 ? 50U : 1U));
    }
    assert_true(seconds < 4 * SCHEDULE_TRIAL_AGAIN);
}

static void a_way_that_is_not_possible_is_left_at_once(void **state)
{
    (void)state;
    struct schedule_trial trial = {0};
    run(&trial, 1000, 90, 45);
    schedule_trial_note(&trial, 1, SCHEDULE_TRIAL_FOR_EVER);
    assert_int_equal(run(&trial, SCHEDULE_TRIAL_AGAIN / 2, 90, 45), 0);
}

/* The memory of the call must come back into the caches first. */
static void the_first_call_of_a_row_may_be_slow(void **state)
{
    (void)state;
    struct schedule_trial trial = {0};
    int last = -1, seconds = 0;
    for (int i = 0; i < 20 * SCHEDULE_TRIAL_AGAIN; i++) {
        int way = schedule_trial_choose(&trial);
        seconds += way;
        schedule_trial_note(&trial, way, (way == 1 ? 80U : 100U) + (way == last ? 0U : 60U));
        last = way;
    }
    assert_true(seconds > 19 * SCHEDULE_TRIAL_AGAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_are_taken_first_and_then_the_faster_one),
        cmocka_unit_test(the_slower_one_is_tried_again_once_in_a_while),
        cmocka_unit_test(what_has_become_faster_is_found),
        cmocka_unit_test(long_calls_among_them_change_nothing),
        cmocka_unit_test(a_way_that_is_not_possible_is_left_at_once),
        cmocka_unit_test(the_first_call_of_a_row_may_be_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
