/* The driver over a cluster that misbehaves: whatever happens, the job comes to its end, and then
 * nothing is sent any more.
 *
 * A failure prints its seed; MUSTER_SEED=n runs that one alone, MUSTER_SIMULATIONS=n that many. */
#include "base/testing/test.h"
#include "base/testing/test_seeds.h"
#include "scenes.h"

enum { RUNS = 300 };

static void expect_nothing_wrong(const char *broken)
{
    if (broken) {
        fail_msg("%s", broken);
    }
}

#define SCENE(name, says)                                                                          \
    static void says(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        expect_nothing_wrong(scene_##name());                                                      \
    }
SCENE(calm, a_job_takes_no_more_requests_than_it_must)
SCENE(slow_watches, what_is_not_shown_yet_is_not_made_again)
SCENE(suspended, a_job_that_was_just_suspended_gets_no_pods)
SCENE(lost_answers, an_answer_that_was_lost_makes_nothing_twice)
SCENE(counted_once, what_was_not_answered_is_counted_once)
SCENE(refused, what_was_refused_is_tried_again)
SCENE(taken_name, a_name_that_is_taken_is_told_and_waited_for)
SCENE(name_passed_on, only_the_pod_that_was_meant_is_deleted)
SCENE(two_drivers, a_job_that_is_over_stays_so)
SCENE(lost_node, a_pod_on_a_node_that_stays_silent_is_replaced)
SCENE(node_back, a_node_that_is_back_keeps_its_pod)
SCENE(autoscaler, an_autoscaler_follows_its_job)
SCENE(gang, pods_of_a_gang_wait_for_their_group)
SCENE(unreadable, a_job_that_cannot_be_read_is_said_once)

static void run_seed(uint64_t seed)
{
    const char *broken = chaos_run(seed, 0, true);
    if (broken) {
        fail_msg("MUSTER_SEED=%llu: %s", (unsigned long long)seed, broken);
    }
}

static void whatever_happens_there_is_an_end(void **state)
{
    (void)state;
    test_each_seed(RUNS, run_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_takes_no_more_requests_than_it_must),
        cmocka_unit_test(what_is_not_shown_yet_is_not_made_again),
        cmocka_unit_test(a_job_that_was_just_suspended_gets_no_pods),
        cmocka_unit_test(an_answer_that_was_lost_makes_nothing_twice),
        cmocka_unit_test(what_was_not_answered_is_counted_once),
        cmocka_unit_test(what_was_refused_is_tried_again),
        cmocka_unit_test(a_name_that_is_taken_is_told_and_waited_for),
        cmocka_unit_test(only_the_pod_that_was_meant_is_deleted),
        cmocka_unit_test(a_job_that_is_over_stays_so),
        cmocka_unit_test(a_pod_on_a_node_that_stays_silent_is_replaced),
        cmocka_unit_test(a_node_that_is_back_keeps_its_pod),
        cmocka_unit_test(an_autoscaler_follows_its_job),
        cmocka_unit_test(pods_of_a_gang_wait_for_their_group),
        cmocka_unit_test(a_job_that_cannot_be_read_is_said_once),
        cmocka_unit_test(whatever_happens_there_is_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
