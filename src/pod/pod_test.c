/* The life of a pod, as a kubelet manages it, as traces: the second, then the effects. */
#include "pod/fixture.h"

#include <stdio.h>

static void a_container_runs_to_its_end(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE ", 'restartPolicy': 'Never'}");
    feed(&s, 0, TICK);
    assert_status(&s, "phase", "Pending");
    feed(&s, 1, SCHEDULED);
    assert_status(&s, "containerStatuses.0.state.waiting.reason", "ContainerCreating");
    feed(&s, 2, STARTED(0, 0));
    assert_status(&s, "phase", "Running");
    assert_status(&s, "conditions.1.status", "True");
    feed(&s, 5, EXITED(0, 0, 0));
    assert_status(&s, "phase", "Succeeded");
    assert_status(&s, "conditions.1.reason", "PodCompleted");
    assert_status(&s, "containerStatuses.0.state",
                  "{\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\",\"startedAt\":"
                  "\"2026-01-01T00:00:02Z\",\"finishedAt\":\"2026-01-01T00:00:05Z\","
                  "\"containerID\":\"muster://u/pytorch/0\"}}");
    assert_true(pod_is_finished(s.pod));
    assert_string_equal(buf_str(&s.trace), "0: status\n"
                                           "1: status, start 0 attempt 0\n"
                                           "2: status\n"
                                           "5: status\n");
    close_scene(&s);
}

static void never_leaves_a_failure_alone(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE ", 'restartPolicy': 'Never'}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0, STARTED(0, 0));
    feed(&s, 1, (struct pod_event){.kind = POD_EXITED, .code = 137, .oom = true});
    assert_status(&s, "phase", "Failed");
    assert_status(&s, "containerStatuses.0.state.terminated.reason", "OOMKilled");
    close_scene(&s);
}

/* Kubernetes has one action, to restart, for codes that a rule names or does not name. */
static void rules_say_which_codes_start_a_container_again(void **state)
{
    (void)state;
    static const struct {
        const char *rules;
        int code;
        const char *phase;
    } table[] = {
        {"[{'action': 'Restart', 'exitCodes': {'operator': 'In', 'values': [3, 4]}}]", 4,
         "Running"},
        {"[{'action': 'Restart', 'exitCodes': {'operator': 'In', 'values': [3, 4]}}]", 5, "Failed"},
        {"[{'action': 'Restart', 'exitCodes': {'operator': 'NotIn', 'values': [0, 65]}}]", 137,
         "Running"},
        {"[{'action': 'Restart', 'exitCodes': {'operator': 'NotIn', 'values': [0, 65]}}]", 65,
         "Failed"},
        {"[{'action': 'Restart', 'exitCodes': {'operator': 'NotIn', 'values': [0, 65]}}]", 0,
         "Succeeded"},
        {"[{'action': 'Other', 'exitCodes': {'operator': 'In', 'values': [4]}}]", 4, "Failed"},
        {"[{'action': 'Restart'}]", 4, "Failed"},
        {"[]", 4, "Failed"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char spec[512];
        struct scene s;
        snprintf(spec, sizeof spec,
                 "{'restartPolicy': 'OnFailure', 'containers': [{'name': 'pytorch', "
                 "'restartPolicy': 'Never', 'restartPolicyRules': %s}]}",
                 table[i].rules);
        open_scene(&s, spec);
        feed(&s, 0, SCHEDULED);
        feed(&s, 0, STARTED(0, 0));
        feed(&s, 1, EXITED(0, 0, table[i].code));
        assert_status(&s, "phase", table[i].phase);
        close_scene(&s);
    }
}

/* 0 s, 10, 20, 40, 80, 160, 300, 300: the first restart comes at once. */
static void restarts_come_slower_and_slower(void **state)
{
    (void)state;
    const int delays[] = {0, 10, 20, 40, 80, 160, 300, 300};
    struct scene s;
    open_scene(&s, "{" ONE ", 'restartPolicy': 'OnFailure'}");
    feed(&s, 0, SCHEDULED);
    double now = 0;
    for (int n = 0; n < 8; n++) {
        feed(&s, now, STARTED(0, n));
        now += 1;
        buf_clear(&s.trace);
        feed(&s, now, EXITED(0, n, 1));
        assert_status(&s, "phase", "Running");
        if (delays[n] > 0) {
            assert_status(&s, "containerStatuses.0.state.waiting.reason", "CrashLoopBackOff");
            feed(&s, now + delays[n] - 0.001, TICK);
            assert_null(strstr(buf_str(&s.trace), "start"));
        }
        now += delays[n];
        feed(&s, now, TICK);
        assert_non_null(strstr(buf_str(&s.trace), "start 0"));
    }
    assert_status(&s, "containerStatuses.0.restartCount", "8");
    close_scene(&s);
}

static void a_long_run_forgives_former_crashes(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE ", 'restartPolicy': 'Always'}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0, STARTED(0, 0));
    feed(&s, 1, EXITED(0, 0, 1));
    feed(&s, 1, STARTED(0, 1));
    feed(&s, 2, EXITED(0, 1, 1));
    feed(&s, 12, TICK);
    feed(&s, 12, STARTED(0, 2));
    feed(&s, 612, EXITED(0, 2, 0));
    assert_string_equal(buf_str(&s.trace), "0: status, start 0 attempt 0\n"
                                           "0: status\n"
                                           "1: status, start 0 attempt 1\n"
                                           "1: status\n"
                                           "2: status, wake 12\n"
                                           "12: status, start 0 attempt 2\n"
                                           "12: status\n"
                                           "612: status, start 0 attempt 3\n");
    close_scene(&s);
}

static void init_containers_run_in_order_before_all_others(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s,
               "{'initContainers': [{'name': 'a'}, {'name': 'b'}], 'containers': [{'name': 'c'}, "
               "{'name': 'd'}], 'restartPolicy': 'OnFailure'}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 1, STARTED(0, 0));
    feed(&s, 2, EXITED(0, 0, 1));
    feed(&s, 3, STARTED(0, 1));
    assert_status(&s, "phase", "Pending");
    assert_status(&s, "conditions.0.message", "containers with incomplete status: [a b]");
    feed(&s, 4, EXITED(0, 1, 0));
    feed(&s, 5, STARTED(1, 0));
    assert_status(&s, "containerStatuses.0.state.waiting.reason", "PodInitializing");
    feed(&s, 6, EXITED(1, 0, 0));
    assert_status(&s, "conditions.0.status", "True");
    assert_string_equal(buf_str(&s.trace), "0: status, start 0 attempt 0\n"
                                           "1: status\n"
                                           "2: status, start 0 attempt 1\n"
                                           "3: status\n"
                                           "4: status, start 1 attempt 0\n"
                                           "5: status\n"
                                           "6: status, start 2 attempt 0, start 3 attempt 0\n");
    close_scene(&s);
}

static void a_failed_init_container_fails_a_never_pod(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{'initContainers': [{'name': 'a'}], " ONE ", 'restartPolicy': 'Never'}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0, STARTED(0, 0));
    feed(&s, 1, EXITED(0, 0, 3));
    assert_status(&s, "phase", "Failed");
    feed(&s, 99, TICK);
    assert_null(strstr(buf_str(&s.trace), "start 1"));
    close_scene(&s);
}

static void deletion_asks_first_then_kills(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE ", 'restartPolicy': 'Always', 'terminationGracePeriodSeconds': 5}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0, STARTED(0, 0));
    feed(&s, 10, DELETE(-1));
    feed(&s, 12, TICK);
    feed(&s, 15, TICK);
    feed(&s, 16, EXITED(0, 0, 137));
    feed(&s, 17, TICK);
    assert_string_equal(buf_str(&s.trace), "0: status, start 0 attempt 0\n"
                                           "0: status\n"
                                           "10: status, wake 15, signal 0 attempt 0 SIGTERM\n"
                                           "12: wake 15\n"
                                           "15: signal 0 attempt 0 SIGKILL\n"
                                           "16: gone\n"
                                           "17:\n");
    close_scene(&s);
}

/* After Ctrl-C, half of the grace is for a script's KeyboardInterrupt, the other half for its
 * handler of TERM. */
static void an_interrupt_comes_first_and_shares_the_grace(void **state)
{
    (void)state;
    struct scene s;
    struct pod_event interrupted = DELETE(-1);
    interrupted.interrupt = true;
    open_scene(&s, "{" ONE ", 'terminationGracePeriodSeconds': 6}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0, STARTED(0, 0));
    feed(&s, 10, interrupted);
    feed(&s, 11, TICK);
    feed(&s, 13, TICK);
    feed(&s, 16, TICK);
    feed(&s, 16, EXITED(0, 0, 137));
    assert_string_equal(buf_str(&s.trace), "0: status, start 0 attempt 0\n"
                                           "0: status\n"
                                           "10: status, wake 13, signal 0 attempt 0 SIGINT\n"
                                           "11: wake 13\n"
                                           "13: wake 16, signal 0 attempt 0 SIGTERM\n"
                                           "16: signal 0 attempt 0 SIGKILL\n"
                                           "16: gone\n");
    close_scene(&s);
}

/* A deletion that begins with TERM does not wait for the rest of an interrupt's time. */
static void a_deletion_after_an_interrupt_asks_at_once(void **state)
{
    (void)state;
    struct scene s;
    struct pod_event interrupted = DELETE(10);
    interrupted.interrupt = true;
    open_scene(&s, "{" ONE "}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0, STARTED(0, 0));
    feed(&s, 1, interrupted);
    feed(&s, 2, DELETE(1));
    feed(&s, 3, TICK);
    assert_string_equal(buf_str(&s.trace), "0: status, start 0 attempt 0\n"
                                           "0: status\n"
                                           "1: status, wake 6, signal 0 attempt 0 SIGINT\n"
                                           "2: wake 3, signal 0 attempt 0 SIGTERM\n"
                                           "3: signal 0 attempt 0 SIGKILL\n");
    close_scene(&s);
}

static void no_grace_is_no_time_for_an_interrupt(void **state)
{
    (void)state;
    struct scene s;
    struct pod_event interrupted = DELETE(0);
    interrupted.interrupt = true;
    open_scene(&s, "{" ONE "}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0, STARTED(0, 0));
    feed(&s, 1, interrupted);
    assert_string_equal(buf_str(&s.trace), "0: status, start 0 attempt 0\n"
                                           "0: status\n"
                                           "1: status, signal 0 attempt 0 SIGKILL\n");
    close_scene(&s);
}

static void a_second_deletion_may_only_shorten_the_grace(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE "}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0, STARTED(0, 0));
    feed(&s, 1, DELETE(10));
    feed(&s, 2, DELETE(60));
    feed(&s, 3, DELETE(0));
    assert_string_equal(buf_str(&s.trace), "0: status, start 0 attempt 0\n"
                                           "0: status\n"
                                           "1: status, wake 11, signal 0 attempt 0 SIGTERM\n"
                                           "2: wake 11\n"
                                           "3: signal 0 attempt 0 SIGKILL\n");
    close_scene(&s);
}

/* The event as a later agent reports it: 4 of the 10 seconds were over when the former agent
 * died. */
static void a_deletion_of_earlier_has_less_grace_left(void **state)
{
    (void)state;
    struct scene s;
    struct pod_event of_earlier = DELETE(10);
    open_scene(&s, "{" ONE "}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0, STARTED(0, 0));
    of_earlier.at_unix_ms = EPOCH + 1000;
    feed(&s, 5, of_earlier);
    feed(&s, 11, TICK);
    assert_string_equal(buf_str(&s.trace), "0: status, start 0 attempt 0\n"
                                           "0: status\n"
                                           "5: status, wake 11, signal 0 attempt 0 SIGTERM\n"
                                           "11: signal 0 attempt 0 SIGKILL\n");
    close_scene(&s);
}

/* The agent may learn of the deletion between START and the supervisor's answer. */
static void a_start_in_flight_is_ended_when_it_arrives(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE "}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 1, DELETE(30));
    feed(&s, 2, STARTED(0, 0));
    feed(&s, 3, EXITED(0, 0, 143));
    assert_string_equal(buf_str(&s.trace), "0: status, start 0 attempt 0\n"
                                           "1: wake 31\n"
                                           "2: status, wake 31, signal 0 attempt 0 SIGTERM\n"
                                           "3: gone\n");
    close_scene(&s);
}

static void a_pod_without_a_place_just_goes(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE "}");
    feed(&s, 0, (struct pod_event){.kind = POD_UNSCHEDULABLE, .message = "2 GPUs are busy"});
    assert_status(&s, "conditions.0.reason", "Unschedulable");
    assert_status(&s, "conditions.0.message", "2 GPUs are busy");
    feed(&s, 1, DELETE(30));
    assert_string_equal(buf_str(&s.trace), "0: status\n1: gone\n");
    close_scene(&s);
}

static void the_deadline_of_a_pod_ends_it_once_all_processes_have(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE ", 'activeDeadlineSeconds': 60, 'terminationGracePeriodSeconds': 1}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 1, STARTED(0, 0));
    feed(&s, 60, TICK);
    assert_status(&s, "phase", "Running");
    feed(&s, 61, TICK);
    feed(&s, 62, EXITED(0, 0, 137));
    assert_status(&s, "phase", "Failed");
    assert_status(&s, "reason", "DeadlineExceeded");
    assert_string_equal(buf_str(&s.trace), "0: status, wake 60, start 0 attempt 0\n"
                                           "1: status, wake 60\n"
                                           "60: status, wake 61, signal 0 attempt 0 SIGTERM\n"
                                           "61: signal 0 attempt 0 SIGKILL\n"
                                           "62: status\n");
    close_scene(&s);
}

/* A supervisor that a new controller asked while it started an attempt has reported it as
 * started. */
static void one_that_failed_to_start_after_all_has_ended(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE ", 'restartPolicy': 'Never'}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 1, STARTED(0, 0));
    feed(&s, 2, (struct pod_event){.kind = POD_START_FAILED, .message = "ours: too late"});
    assert_status(&s, "phase", "Running");
    feed(&s, 3, (struct pod_event){.kind = POD_START_FAILED, .code = 127, .reason = "StartError"});
    assert_status(&s, "phase", "Failed");
    assert_status(&s, "containerStatuses.0.state.terminated.exitCode", "127");
    close_scene(&s);
}

static void what_cannot_start_is_tried_again_or_has_failed(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "{" ONE ", 'restartPolicy': 'Never'}");
    feed(&s, 0, SCHEDULED);
    feed(&s, 0,
         (struct pod_event){.kind = POD_START_FAILED,
                            .reason = "CreateContainerConfigError",
                            .message = "configmap \"c\" not found"});
    assert_status(&s, "containerStatuses.0.state.waiting.reason", "CreateContainerConfigError");
    assert_status(&s, "phase", "Pending");
    feed(&s, 10, TICK);
    feed(&s, 10,
         (struct pod_event){.kind = POD_START_FAILED,
                            .code = 128,
                            .reason = "StartError",
                            .message = "no such file: trian.py"});
    assert_status(&s, "containerStatuses.0.state.terminated.exitCode", "128");
    assert_status(&s, "containerStatuses.0.state.terminated.message", "no such file: trian.py");
    assert_status(&s, "phase", "Failed");
    assert_string_equal(buf_str(&s.trace), "0: status, start 0 attempt 0\n"
                                           "0: status, wake 10\n"
                                           "10: start 0 attempt 0\n"
                                           "10: status\n");
    close_scene(&s);
}

static void the_quality_of_service_follows_from_the_resources(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"{}", "BestEffort"},
        {"{'limits': {'nvidia.com/gpu': 1}}", "BestEffort"},
        {"{'requests': {'cpu': 1}}", "Burstable"},
        {"{'limits': {'cpu': 1, 'memory': '1Gi'}}", "Guaranteed"},
        {"{'limits': {'cpu': 2, 'memory': '1Gi'}, 'requests': {'cpu': 1}}", "Burstable"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char spec[256];
        struct scene s;
        snprintf(spec, sizeof spec, "{'containers': [{'name': 'pytorch', 'resources': %s}]}",
                 table[i][0]);
        open_scene(&s, spec);
        assert_status(&s, "qosClass", table[i][1]);
        close_scene(&s);
    }
}

static void a_pod_without_containers_is_refused(void **state)
{
    (void)state;
    json_t *object = parse("{'metadata': {'name': 'p'}, 'spec': {'containers': []}}");
    struct muster_err err = MUSTER_ERR_INIT;
    assert_null(pod_new(object, &(struct pod_place){"n", "h", "p"}, &err));
    assert_int_equal(err.code, MUSTER_EDATA);
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_container_runs_to_its_end),
        cmocka_unit_test(never_leaves_a_failure_alone),
        cmocka_unit_test(rules_say_which_codes_start_a_container_again),
        cmocka_unit_test(restarts_come_slower_and_slower),
        cmocka_unit_test(a_long_run_forgives_former_crashes),
        cmocka_unit_test(init_containers_run_in_order_before_all_others),
        cmocka_unit_test(a_failed_init_container_fails_a_never_pod),
        cmocka_unit_test(deletion_asks_first_then_kills),
        cmocka_unit_test(an_interrupt_comes_first_and_shares_the_grace),
        cmocka_unit_test(a_deletion_after_an_interrupt_asks_at_once),
        cmocka_unit_test(no_grace_is_no_time_for_an_interrupt),
        cmocka_unit_test(a_second_deletion_may_only_shorten_the_grace),
        cmocka_unit_test(a_deletion_of_earlier_has_less_grace_left),
        cmocka_unit_test(a_start_in_flight_is_ended_when_it_arrives),
        cmocka_unit_test(a_pod_without_a_place_just_goes),
        cmocka_unit_test(the_deadline_of_a_pod_ends_it_once_all_processes_have),
        cmocka_unit_test(what_cannot_start_is_tried_again_or_has_failed),
        cmocka_unit_test(one_that_failed_to_start_after_all_has_ended),
        cmocka_unit_test(the_quality_of_service_follows_from_the_resources),
        cmocka_unit_test(a_pod_without_containers_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
