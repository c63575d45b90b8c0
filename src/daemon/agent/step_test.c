/* The agent's decisions, as traces: an event, and the effects that follow. Jobs and pods are
 * numbered in the order in which they appear: the job of the first pod is 1, that pod is 2. */
#include "daemon/agent/step_fixture.h"

#include <stdlib.h>
#include <string.h>

static int set_up(void **state)
{
    struct agent_state *agent = calloc(1, sizeof *agent);
    *state = agent;
    return agent && agent_state_init(agent) ? 0 : -1;
}

static int tear_down(void **state)
{
    agent_state_done(*state);
    free(*state);
    return 0;
}

static void expect(struct agent_state *agent, struct agent_event event, const char *effects)
{
    struct buf text;
    buf_init(&text, 1 << 12);
    put_effects(agent_step(agent, &event), &text);
    assert_string_equal(buf_str(&text), effects);
    const char *broken = agent_state_check(agent);
    if (broken) {
        fail_msg("%s", broken);
    }
    buf_done(&text);
}

#define SEEN(k, u, j, ...)                                                                         \
    ((struct agent_event){.kind = AGENT_SEEN,                                                      \
                          .seen = {.key = (k), .uid = (u), .job = (j), __VA_ARGS__}})
#define DELETED(grace) .deleting = true, .may_have_run = true, .grace_s = (grace)
#define OF_POD(k, n) ((struct agent_event){.kind = AGENT_##k, .pod = (n)})
#define OF_JOB(k, n) ((struct agent_event){.kind = AGENT_SUPERVISOR_##k, .job = (n)})
#define FED(n, ...) ((struct agent_event){.kind = AGENT_FED, .pod = (n), __VA_ARGS__})
#define WROTE(n, s)                                                                                \
    ((struct agent_event){.kind = AGENT_WROTE, .pod = (n), .status = AGENT_STATUS_##s})
#define REMOVED(n, s) ((struct agent_event){.kind = AGENT_REMOVED, .pod = (n), .settled = (s)})
#define SIMPLE(k) ((struct agent_event){.kind = AGENT_##k})

/* Brings the first pod of the first job to the state in which its containers may start. */
static void run_pod(struct agent_state *agent)
{
    expect(agent, SEEN("d/a", "A", "J"), "admit 2");
    expect(agent, OF_POD(ADMITTED, 2), "");
    expect(agent, OF_JOB(READY, 1), "feed 2 adopted");
    expect(agent, FED(2, .status = AGENT_STATUS_TAKEN), "place 2");
    expect(agent, OF_POD(PLACED, 2), "feed 2 scheduled");
    expect(agent, FED(2, .status = AGENT_STATUS_TAKEN), "");
}

static void a_pod_runs_to_its_end_and_its_job_with_it(void **state)
{
    run_pod(*state);
    expect(*state, OF_POD(NEWS, 2), "feed 2 news");
    expect(*state, FED(2, .finished = true, .status = AGENT_STATUS_TAKEN), "keep 2");
    expect(*state, OF_POD(KEPT, 2), "let go 2, end job 1");
    expect(*state, OF_JOB(ENDED, 1), "close job 1");
    assert_int_equal(agent_state_pods(*state), 0);
}

static void pods_of_a_job_share_its_supervisor(void **state)
{
    run_pod(*state);
    expect(*state, SEEN("d/b", "B", "J"), "admit 3");
    expect(*state, OF_POD(ADMITTED, 3), "feed 3 adopted"); /* the job is ready already */
    expect(*state, FED(3), "place 3");
    expect(*state, FED(2, .finished = true), "keep 2");
    expect(*state, OF_POD(KEPT, 2), "let go 2");
    expect(*state, OF_POD(PLACED, 3), "feed 3 scheduled");
    expect(*state, FED(3, .finished = true), "keep 3");
    expect(*state, OF_POD(KEPT, 3), "let go 3, end job 1");
}

static void a_deleted_pod_goes_with_its_object(void **state)
{
    run_pod(*state);
    expect(*state, SEEN("d/a", "A", "J", DELETED(30)), "feed 2 delete");
    expect(*state, FED(2, .status = AGENT_STATUS_TAKEN), "");
    expect(*state, SEEN("d/a", "A", "J", DELETED(30)), ""); /* the pod's machine knows it already */
    expect(*state, SEEN("d/a", "A", "J", DELETED(5)), "feed 2 delete");
    expect(*state, FED(2), "");
    expect(*state, OF_POD(NEWS, 2), "feed 2 news");
    expect(*state, FED(2, .gone = true, .finished = true), "keep 2");
    expect(*state, OF_POD(KEPT, 2), "remove 2");
    expect(*state, REMOVED(2, true), "let go 2, end job 1");
}

/* The object of a pod that is deleted while its data is written is removed by the agent: no other
 * code would remove it. */
static void one_deleted_while_its_remains_are_written_goes_with_its_object(void **state)
{
    run_pod(*state);
    expect(*state, FED(2, .finished = true), "keep 2");
    expect(*state, SEEN("d/a", "A", "J", DELETED(30)), "");
    expect(*state, OF_POD(KEPT, 2), "remove 2");
    expect(*state, REMOVED(2, true), "let go 2, end job 1");
}

static void another_pod_of_the_same_name_ends_the_former(void **state)
{
    run_pod(*state);
    expect(*state, SEEN("d/a", "A2", "J"), "feed 2 delete, admit 3");
    expect(*state, SEEN("d/a", NULL, NULL), "");
    expect(*state, OF_POD(ADMITTED, 3), "feed 3 delete, feed 3 adopted");
    expect(*state, FED(2, .gone = true), "keep 2");
    expect(*state, FED(3, .gone = true), "keep 3");
}

/* The earlier controller died during the deletion. */
static void a_pod_that_was_being_deleted_is_looked_after_or_discarded(void **state)
{
    expect(*state, SEEN("d/a", "A", "J", .deleting = true, .may_have_run = false), "discard");
    expect(*state, SEEN("d/a", "A", "J", .over = true, DELETED(3)), "discard");
    expect(*state, SEEN("d/a", "A", "J", .over = true), "");
    expect(*state, SEEN("d/a", "A", "J", DELETED(3)), "admit 2");
    expect(*state, OF_POD(ADMITTED, 2), "feed 2 delete");
    expect(*state, FED(2), "");
    expect(*state, OF_JOB(READY, 1), "feed 2 adopted");
    expect(*state, FED(2), ""); /* never placed */
    expect(*state, FED(2, .gone = true), "keep 2");
}

static void one_that_leaves_before_its_supervisor_is_ready_ends_it(void **state)
{
    expect(*state, SEEN("d/a", "A", "J"), "admit 2");
    expect(*state, OF_POD(ADMITTED, 2), "");
    expect(*state, SEEN("d/a", "A", "J", DELETED(0)), "feed 2 delete");
    expect(*state, FED(2, .gone = true), "keep 2");
    expect(*state, OF_POD(KEPT, 2), "remove 2");
    expect(*state, REMOVED(2, true), "let go 2, end job 1");
    expect(*state, OF_JOB(READY, 1), "");
    expect(*state, SEEN("d/b", "B", "J"), ""); /* waits until the job is closed */
    expect(*state, OF_JOB(ENDED, 1), "close job 1");
    expect(*state, SEEN("d/b", "B", "J"), "admit 4");
}

static void what_is_refused_is_tried_again(void **state)
{
    expect(*state, SEEN("d/a", "A", "J"), "admit 2");
    expect(*state, OF_POD(REFUSED, 2), "retry soon");
    assert_int_equal(agent_state_pods(*state), 0);
    expect(*state, SIMPLE(RETRY), "look again");
    expect(*state, SEEN("d/a", "A", "J"), "admit 4");
    expect(*state, SEEN("d/b", "B", "J"), "admit 5");
    expect(*state, OF_POD(REFUSED, 4), "retry soon");
    expect(*state, OF_POD(ADMITTED, 5), "");
    expect(*state, OF_JOB(READY, 3), "feed 5 adopted");
}

static void too_few_gpus_are_told_once_and_waited_for(void **state)
{
    run_pod(*state);
    expect(*state, SEEN("d/b", "B", "J"), "admit 3");
    expect(*state, OF_POD(ADMITTED, 3), "feed 3 adopted");
    expect(*state, FED(3), "place 3");
    expect(*state, OF_POD(NOT_PLACED, 3), "tell 3");
    expect(*state, SIMPLE(ROOM_MADE), "place 3");
    expect(*state, SIMPLE(ROOM_MADE), ""); /* the pod is being placed already */
    expect(*state, OF_POD(NOT_PLACED, 3), "");
    expect(*state, SEEN("d/b", "B", "J", DELETED(1)), "feed 3 delete");
    expect(*state, SIMPLE(ROOM_MADE), "");
    expect(*state, FED(3, .gone = true), "keep 3");
}

static void a_full_disk_is_a_debt(void **state)
{
    run_pod(*state);
    expect(*state, FED(2, .finished = true, .status = AGENT_STATUS_OWED), "retry soon");
    expect(*state, SIMPLE(RETRY), "write 2, look again");
    expect(*state, WROTE(2, OWED), "retry soon");
    expect(*state, SIMPLE(RETRY), "write 2, look again");
    expect(*state, WROTE(2, TAKEN), "keep 2");
    expect(*state, OF_POD(KEPT, 2), "let go 2, end job 1");
}

static void debts_are_paid_one_after_the_other_until_one_cannot_be(void **state)
{
    run_pod(*state);
    expect(*state, SEEN("d/b", "B", "J"), "admit 3");
    expect(*state, OF_POD(ADMITTED, 3), "feed 3 adopted");
    expect(*state, FED(3, .finished = true, .status = AGENT_STATUS_OWED), "retry soon");
    expect(*state, SEEN("d/a", NULL, NULL), "feed 2 delete");
    expect(*state, FED(2, .gone = true), "keep 2");
    expect(*state, OF_POD(KEPT, 2), "remove 2");
    expect(*state, REMOVED(2, false), "retry soon");
    expect(*state, SIMPLE(RETRY), "remove 2, look again");
    expect(*state, REMOVED(2, false), "retry soon"); /* pod 3 would fail too */
    expect(*state, SIMPLE(RETRY), "remove 2, look again");
    expect(*state, REMOVED(2, true), "let go 2, write 3");
    expect(*state, WROTE(3, TAKEN), "keep 3");
}

static void a_lost_supervisor_is_told_to_all_its_pods_and_followed_by_a_new_one(void **state)
{
    run_pod(*state);
    expect(*state, SEEN("d/b", "B", "J"), "admit 3");
    expect(*state, OF_JOB(LOST, 1), "feed 2 lost");
    expect(*state, OF_POD(ADMITTED, 3), "feed 3 lost"); /* the supervisor was lost before */
    expect(*state, SEEN("d/c", "C", "J"), "");          /* waits until the others have left */
    expect(*state, FED(2, .finished = true, .status = AGENT_STATUS_TAKEN), "keep 2");
    expect(*state, FED(3, .finished = true, .status = AGENT_STATUS_TAKEN), "keep 3");
    expect(*state, OF_POD(KEPT, 2), "let go 2");
    expect(*state, OF_POD(KEPT, 3), "let go 3, close job 1");
    expect(*state, SEEN("d/c", "C", "J"), "admit 5");
}

static void news_of_the_forgotten_find_nobody(void **state)
{
    a_pod_runs_to_its_end_and_its_job_with_it(state);
    expect(*state, OF_POD(NEWS, 2), "");
    expect(*state, FED(2, .finished = true), "");
    expect(*state, OF_POD(PLACED, 2), "");
    expect(*state, OF_POD(NOT_PLACED, 2), "");
    expect(*state, WROTE(2, TAKEN), "");
    expect(*state, REMOVED(2, true), "");
    expect(*state, OF_JOB(READY, 1), "");
    expect(*state, OF_JOB(LOST, 1), "");
    expect(*state, OF_JOB(ENDED, 1), "");
    assert_false(agent_state_job_runs(*state, 1));
    assert_int_equal(agent_state_find(*state, "A"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pod_runs_to_its_end_and_its_job_with_it),
        TEST(pods_of_a_job_share_its_supervisor),
        TEST(a_deleted_pod_goes_with_its_object),
        TEST(one_deleted_while_its_remains_are_written_goes_with_its_object),
        TEST(another_pod_of_the_same_name_ends_the_former),
        TEST(a_pod_that_was_being_deleted_is_looked_after_or_discarded),
        TEST(one_that_leaves_before_its_supervisor_is_ready_ends_it),
        TEST(what_is_refused_is_tried_again),
        TEST(too_few_gpus_are_told_once_and_waited_for),
        TEST(a_full_disk_is_a_debt),
        TEST(debts_are_paid_one_after_the_other_until_one_cannot_be),
        TEST(a_lost_supervisor_is_told_to_all_its_pods_and_followed_by_a_new_one),
        TEST(news_of_the_forgotten_find_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
