/* Checks what ends a job, and what is done then: deadlines, clean-up, the time to live. Names in
 * comments are upstream's tests, which show the same facts. */
#include "control/scene.h"
#include "job/annotations.h"

/* TestDeletePodsAndServices, TestBackoffLimitExceededRespectsCleanPodPolicy. */
static void clean_up_by_policy(void **state)
{
    (void)state;
    static const struct {
        const char *condition, *policy;
        const char *left; /* of worker-0 (running), worker-1 (succeeded), worker-2 (pending) */
    } table[] = {
        {"Succeeded", "{'cleanPodPolicy': 'All'}", ""},
        {"Succeeded", "{'cleanPodPolicy': 'Running'}", "1"},
        {"Succeeded", "{'cleanPodPolicy': 'None'}", "012"},
        {"Failed", "{'cleanPodPolicy': 'All'}", ""},
        {"Failed", "{'cleanPodPolicy': 'Running'}", "1"},
        {"Failed", "{}", "012"},
        {"Suspended", "{'cleanPodPolicy': 'None', 'suspend': true}", ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_scene(&s, make_job(false, 3, "Never", table[i].policy));
        set_condition(&s, table[i].condition, "2026-01-01T00:00:00Z");
        add_pod(&s, "Worker", 0, "Running");
        add_pod(&s, "Worker", 1, "Succeeded");
        add_pod(&s, "Worker", 2, "Pending");
        step(&s);
        for (char c = '0'; c < '3'; c++) {
            char pod[64];
            char service[64];
            snprintf(pod, sizeof pod, "delete pod mnist-worker-%c", c);
            snprintf(service, sizeof service, "delete service mnist-worker-%c", c);
            bool stays = strchr(table[i].left, c) != NULL;
            assert_int_equal(count(&s, pod), !stays);
            assert_int_equal(count(&s, service), !stays);
        }
        close_scene(&s);
    }
}

/* Under cleanPodPolicy None, the GPUs of processes that still run are freed after 30 s on this
 * machine, but not on a cluster. */
static void gpus_are_freed_on_this_machine_only(void **state)
{
    (void)state;
    static const struct {
        enum control_target target;
        int64_t now_s;
        bool told, deleted;
    } table[] = {{CONTROL_TARGET_MACHINE, 0, true, false},
                 {CONTROL_TARGET_MACHINE, 29, true, false},
                 {CONTROL_TARGET_MACHINE, 30, false, true},
                 {CONTROL_TARGET_CLUSTER, 0, false, false},
                 {CONTROL_TARGET_CLUSTER, 30, false, false}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_scene(&s, make_job(false, 1, "Never", "{}"));
        s.target = table[i].target;
        s.now_s = table[i].now_s;
        set_condition(&s, "Succeeded", "2026-01-01T00:00:00Z");
        json_t *pod = add_pod(&s, "Worker", 0, "Running");
        json_object_set_new(json_array_get(doc_at(pod, "spec.containers"), 0), "resources",
                            parse("{'limits': {'nvidia.com/gpu': 1}}"));
        step(&s);
        assert_int_equal(count(&s, "delete pod"), table[i].deleted);
        assert_int_equal(count(&s, "wake 30"), table[i].told);
        close_scene(&s);
    }
}

/* Otherwise two operators would correct each other for ever. */
static void what_another_operator_counts_after_the_end_is_left(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, 2, "Never", "{}"));
    add_pod(&s, "Master", 0, "Succeeded");
    add_pod(&s, "Worker", 0, "Running");
    add_pod(&s, "Worker", 1, "Running");
    step(&s);
    assert_int_equal(doc_int(s.status, "replicaStatuses.Worker.active", 0), 2);
    json_object_del(doc_at(s.job, "status.replicaStatuses.Worker"), "active");
    doc_set_int(s.job, "status.replicaStatuses.Worker.succeeded", 2);
    step(&s);
    assert_null(s.status);
    close_scene(&s);
}

static void pods_that_already_go_are_not_deleted_again(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(false, 1, "Never", "{'cleanPodPolicy': 'All'}"));
    set_condition(&s, "Succeeded", "2026-01-01T00:00:00Z");
    doc_set_text(add_pod(&s, "Worker", 0, "Running"), "metadata.deletionTimestamp",
                 "2026-01-01T00:00:00Z");
    step(&s);
    assert_int_equal(count(&s, "delete pod"), 0);
    close_scene(&s);
}

/* TestPastActiveDeadline. */
static void a_deadline_passes_when_it_is_reached(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        int64_t now_s;
        bool past;
    } table[] = {{"{'activeDeadlineSeconds': 0}", 0, true},
                 {"{'activeDeadlineSeconds': 2}", 0, false},
                 {"{'activeDeadlineSeconds': 2}", 1, false},
                 {"{'activeDeadlineSeconds': 2}", 2, true},
                 {"{}", 999999, false}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_scene(&s, make_job(true, -1, "Never", table[i].policy));
        doc_set_text(s.job, "status.startTime", "2026-01-01T00:00:00Z");
        s.now_s = table[i].now_s;
        step(&s);
        assert_int_equal(count(&s, "was active longer than specified deadline"), table[i].past);
        close_scene(&s);
    }
}

/* startTime has whole seconds: without the milliseconds the deadline would pass up to a second
 * early. */
static void a_deadline_counts_from_the_millisecond(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "Never", "{'activeDeadlineSeconds': 1}"));
    s.now_ms = 700;
    step(&s);
    assert_string_equal(doc_text(s.status, "startTime", ""), "2026-01-01T00:00:00Z");
    s.now_ms = 1699;
    step(&s);
    assert_int_equal(count(&s, "was active longer than specified deadline"), 0);
    s.now_ms = 1700;
    step(&s);
    assert_int_equal(count(&s, "was active longer than specified deadline"), 1);
    close_scene(&s);
}

/* The step that starts the clock cannot check the deadline yet, and asks for a wake-up later than
 * now (invariants.c). */
static void a_deadline_of_nothing_is_judged_in_the_next_step(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "Never", "{'activeDeadlineSeconds': 0}"));
    step(&s);
    assert_int_equal(count(&s, "wake"), 1);
    s.now_ms = 1;
    step(&s);
    assert_int_equal(count(&s, "was active longer than specified deadline"), 1);
    close_scene(&s);
}

/* The last pod of a Master and two Workers ends; whether the job ends depends on the policy and the
 * phase. */
static void the_success_policy_decides_whose_end_counts(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        const char *worker; /* phase of worker-1 */
        const char *ends;   /* "": the job does not end */
    } table[] = {
        {NULL, "Running", "Succeeded"},
        {NULL, "Failed", "Succeeded"},
        {"Default", "Running", "Succeeded"},
        {"AllRanks", "Running", ""},
        {"AllRanks", "Pending", ""},
        {"AllRanks", "Failed", "Failed"},
        {"AllRanks", "Succeeded", "Succeeded"},
        {"allranks", "Running", "Succeeded"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_scene(&s, make_job(true, 2, "Never", "{}"));
        if (table[i].policy) {
            json_object_set_new(doc_at(s.job, "metadata.annotations"),
                                JOB_ANNOTATION_SUCCESS_POLICY, json_string(table[i].policy));
        }
        add_pod(&s, "Master", 0, "Succeeded");
        add_pod(&s, "Worker", 0, "Succeeded");
        add_pod(&s, "Worker", 1, table[i].worker);
        step(&s);
        assert_int_equal(count(&s, "PyTorchJobSucceeded"), strcmp(table[i].ends, "Succeeded") == 0);
        assert_int_equal(count(&s, "PyTorchJobFailed"), strcmp(table[i].ends, "Failed") == 0);
        close_scene(&s);
    }
}

/* TestDurationUntilExpireTime. */
static void the_ttl_counts_from_the_end(void **state)
{
    (void)state;
    static const struct {
        const char *condition, *policy;
        int64_t now_s;
        const char *trace;
    } table[] = {
        {"Succeeded", "{}", 100, ""},
        {"Succeeded", "{'ttlSecondsAfterFinished': 10}", 5, "wake 10\n"},
        {"Failed", "{'ttlSecondsAfterFinished': 10}", 10,
         "delete job\nevent Normal SuccessfulDeletePod: Deleted job: mnist\n"},
        {"Succeeded", "{'ttlSecondsAfterFinished': 0}", 0,
         "delete job\nevent Normal SuccessfulDeletePod: Deleted job: mnist\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_scene(&s, make_job(true, -1, "Never", table[i].policy));
        set_condition(&s, table[i].condition, "2026-01-01T00:00:00Z");
        s.now_s = table[i].now_s;
        step(&s);
        assert_string_equal(trace(&s), table[i].trace);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_up_by_policy),
        cmocka_unit_test(gpus_are_freed_on_this_machine_only),
        cmocka_unit_test(what_another_operator_counts_after_the_end_is_left),
        cmocka_unit_test(pods_that_already_go_are_not_deleted_again),
        cmocka_unit_test(a_deadline_passes_when_it_is_reached),
        cmocka_unit_test(a_deadline_counts_from_the_millisecond),
        cmocka_unit_test(a_deadline_of_nothing_is_judged_in_the_next_step),
        cmocka_unit_test(the_success_policy_decides_whose_end_counts),
        cmocka_unit_test(the_ttl_counts_from_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
