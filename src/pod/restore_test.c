/* After a crash of the agent, the status and the records, in whatever order they arrive, lead to
 * the same pod. */
#include "pod/fixture.h"

#include <stdio.h>

static void a_reboot_fails_the_pod_and_says_why(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE ", 'restartPolicy': 'Always'}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0, STARTED(0, 0));
    feed(&s, 9,
         (struct pod_event){.kind = POD_LOST,
                            .reason = "NodeRebooted",
                            .message = "the machine was started again"});
    assert_status(&s, "phase", "Failed");
    assert_status(&s, "reason", "NodeRebooted");
    assert_status(&s, "containerStatuses.0.state.terminated.reason", "ContainerStatusUnknown");
    close_scene(&s);
}

static void old_news_change_nothing(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE ", 'restartPolicy': 'OnFailure'}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0, STARTED(0, 0));
    feed(&s, 1, EXITED(0, 0, 1));
    feed(&s, 1, STARTED(0, 1));
    buf_clear(&s.trace);
    feed(&s, 2, STARTED(0, 0));
    feed(&s, 3, EXITED(0, 0, 1));
    feed(&s, 4, STARTED(0, 1));
    assert_string_equal(buf_str(&s.trace), "2:\n3:\n4:\n");
    close_scene(&s);
}

/* Makes the pod's state machine again from the status and the records, as after a crash of the
 * controller. */
static void crash(struct scene *s)
{
    json_t *object =
        parse("{'metadata': {'name': 'p', 'namespace': 'default', 'uid': 'u'}, 'spec': {"
              "'initContainers': [{'name': 'a'}], " ONE ", 'restartPolicy': 'OnFailure'}}");
    json_object_set_new(object, "status", pod_status(s->pod));
    s->pod = pod_free(s->pod);
    s->pod = new_pod(object);
    json_decref(object);
    buf_clear(&s->trace);
}

/* Crashes at every point of a pod's life and feeds all records again: the rest goes on as if
 * nothing had happened, and no attempt is started twice. */
static void a_crash_anywhere_changes_nothing(void **state)
{
    (void)state;
    const struct pod_event life[] = {SCHEDULED,       STARTED(0, 0),   EXITED(0, 0, 1),
                                     STARTED(0, 1),   EXITED(0, 1, 0), STARTED(1, 0),
                                     EXITED(1, 0, 7), STARTED(1, 1),   EXITED(1, 1, 0)};
    const size_t steps = sizeof life / sizeof life[0];
    for (size_t when = 1; when < steps; when++) {
        struct scene s;
        open_scene(&s,
                   "{'initContainers': [{'name': 'a'}], " ONE ", 'restartPolicy': 'OnFailure'}");
        for (size_t i = 0; i < when; i++) {
            feed(&s, (double)i, life[i]);
        }
        json_t *before = pod_status(s.pod);
        crash(&s);
        for (size_t i = 1; i < when; i++) {
            feed(&s, (double)when, life[i]);
        }
        feed(&s, (double)when, ADOPTED);
        json_t *after = pod_status(s.pod);
        assert_true(json_equal(before, after));
        for (size_t i = when; i < steps; i++) {
            feed(&s, (double)i, life[i]);
        }
        assert_status(&s, "phase", "Succeeded");
        assert_status(&s, "containerStatuses.0.restartCount", "1");
        json_decref(before);
        json_decref(after);
        close_scene(&s);
    }
}

/* The status in the store may be older than the supervisor's records. */
static void records_newer_than_the_status_are_believed(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{'initContainers': [{'name': 'a'}], " ONE ", 'restartPolicy': 'OnFailure'}");
    feed(&s, 0, SCHEDULED);
    crash(&s);
    feed(&s, 9, STARTED(0, 0));
    feed(&s, 9, EXITED(0, 0, 0));
    feed(&s, 9, STARTED(1, 0));
    feed(&s, 9, EXITED(1, 0, 1));
    feed(&s, 9, STARTED(1, 1));
    feed(&s, 9, ADOPTED);
    assert_status(&s, "phase", "Running");
    assert_status(&s, "containerStatuses.0.restartCount", "1");
    assert_status(&s, "containerStatuses.0.lastState.terminated.exitCode", "1");
    assert_null(strstr(buf_str(&s.trace), "start"));
    close_scene(&s);
}

static void a_start_without_a_record_is_issued_again(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{'initContainers': [{'name': 'a'}], " ONE ", 'restartPolicy': 'OnFailure'}");
    feed(&s, 0, SCHEDULED);
    crash(&s);
    feed(&s, 9, TICK);
    feed(&s, 9, ADOPTED);
    assert_string_equal(buf_str(&s.trace), "9:\n9: start 0 attempt 0\n");
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reboot_fails_the_pod_and_says_why),
        cmocka_unit_test(old_news_change_nothing),
        cmocka_unit_test(a_crash_anywhere_changes_nothing),
        cmocka_unit_test(records_newer_than_the_status_are_believed),
        cmocka_unit_test(a_start_without_a_record_is_issued_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
