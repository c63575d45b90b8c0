/* Checks how failures are counted, which pods are created again and when, and how failures are
 * reported. A test's comment names the upstream test that shows the same. */
#include "control/scene.h"

/* TestUpdateJobReplicaStatuses. Here pods beyond the range do not count, and a pod that is being
 * deleted does not count as failed. */
static void counts_of_replicas(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, 4, "OnFailure", "{}"));
    add_pod(&s, "Master", 0, "Pending");
    add_pod(&s, "Worker", 0, "Running");
    add_pod(&s, "Worker", 1, "Succeeded");
    add_pod(&s, "Worker", 2, "Failed");
    doc_set_text(add_pod(&s, "Worker", 3, "Running"), "metadata.deletionTimestamp", "now");
    add_pod(&s, "Worker", 9, "Running");
    step(&s);
    const json_t *worker = doc_at(s.status, "replicaStatuses.Worker");
    assert_int_equal(doc_int(worker, "active", 0), 1);
    assert_int_equal(doc_int(worker, "succeeded", 0), 1);
    assert_int_equal(doc_int(worker, "failed", 0), 1);
    assert_string_equal(doc_text(worker, "selector", ""),
                        "training.kubeflow.org/job-name=mnist,training.kubeflow.org/"
                        "operator-name=pytorchjob-controller,training.kubeflow.org/"
                        "replica-type=worker");
    assert_null(doc_at(s.status, "replicaStatuses.Master.active"));
    assert_int_equal(count(&s, "delete pod mnist-worker-9"), 1);
    close_scene(&s);
}

static void failures_after_the_end_are_still_counted(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(false, 3, "Never", "{}"));
    add_pod(&s, "Worker", 0, "Failed");
    json_t *late = add_pod(&s, "Worker", 1, "Running");
    json_t *killed = add_pod(&s, "Worker", 2, "Running");
    step(&s);
    assert_int_equal(doc_int(s.status, "replicaStatuses.Worker.failed", 0), 1);
    doc_set_text(late, "status.phase", "Failed");
    doc_set_text(killed, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z");
    step(&s);
    assert_int_equal(doc_int(s.status, "replicaStatuses.Worker.failed", 0), 2);
    assert_null(doc_at(s.status, "replicaStatuses.Worker.active"));
    json_array_clear(s.pods);
    step(&s);
    assert_null(s.status);
    close_scene(&s);
}

/* TestIsRetryableExitCode. */
static void exit_codes(void **state)
{
    (void)state;
    static const struct {
        int code;
        bool retried;
    } table[] = {{1, false},  {2, false},  {3, false},  {126, false}, {127, false}, {128, true},
                 {130, true}, {137, true}, {138, true}, {139, true},  {143, true},  {255, true}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_scene(&s, make_job(true, -1, "ExitCode", "{}"));
        set_ended(add_pod(&s, "Master", 0, "Failed"), table[i].code, "Error",
                  "2026-01-01T00:00:00Z");
        step(&s);
        assert_int_equal(count(&s, "delete pod"), table[i].retried);
        assert_int_equal(count(&s, "PyTorchJobFailed"), !table[i].retried);
        close_scene(&s);
    }
}

/* A pod that failed although none of its containers ended (it was evicted, or its node was lost)
 * may run again. */
static void an_evicted_pod_is_made_anew(void **state)
{
    (void)state;
    static const char *const policies[] = {"ExitCode", "OnFailure", "Always"};
    for (size_t i = 0; i < 3; i++) {
        struct scene s;
        open_scene(&s, make_job(true, -1, policies[i], "{}"));
        json_t *pod = add_pod(&s, "Master", 0, "Failed");
        doc_set_text(pod, "status.reason", "Evicted");
        doc_set_text(pod, "status.message", "The node was low on memory.");
        step(&s);
        assert_int_equal(count(&s, "delete pod mnist-master-0"), 1);
        assert_non_null(strstr(trace(&s), "event Warning Evicted: Error pod mnist-master-0 "
                                          "condition message: The node was low on memory.\n"));
        json_array_clear(s.pods);
        step(&s);
        assert_int_equal(count(&s, "create pod mnist-master-0"), 1);
        close_scene(&s);
    }
}

/* The delays are 0 s, 10 s, 20 s, …, as between the kubelet's restarts of containers. A failure is
 * counted once. */
static void pods_made_anew_wait_longer_each_time(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "ExitCode", "{}"));
    static const int delays[] = {0, 10, 20, 40, 80, 160, 300, 300};
    for (int i = 0; i < 8; i++) {
        char uid[32];
        char at[TIMESTAMP_BYTES];
        s.now_s += 5;
        json_t *pod = add_pod(&s, "Master", 0, "Failed");
        snprintf(uid, sizeof uid, "made-%d", i);
        doc_set_text(pod, "metadata.uid", uid);
        set_ended(pod, 137, "Error", timestamp_seconds(EPOCH + s.now_s * 1000, at));
        step(&s);
        assert_non_null(s.status);
        step(&s); /* the deletion was lost: it is repeated, and nothing else is done */
        assert_null(s.status);
        assert_int_equal(count(&s, "delete pod"), 1);
        json_array_clear(s.pods);
        if (delays[i] > 0) {
            char wake[32];
            s.now_s += delays[i] - 1;
            step(&s); /* writes that no pods are left */
            step(&s);
            snprintf(wake, sizeof wake, "wake %lld\n", (long long)s.now_s + 1);
            assert_string_equal(trace(&s), wake);
            s.now_s++;
        }
        step(&s);
        assert_int_equal(count(&s, "create pod"), 1);
    }
    assert_int_equal(doc_int(s.job, "status.counters.failures", 0), 8);
    close_scene(&s);
}

static void the_first_failure_is_named(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, 2, "Never", "{}"));
    add_pod(&s, "Master", 0, "Running");
    set_ended(add_pod(&s, "Worker", 0, "Failed"), 1, "Error", "2026-01-01T00:00:09.500Z");
    set_ended(add_pod(&s, "Worker", 1, "Failed"), 139, "Error", "2026-01-01T00:00:09.400Z");
    step(&s);
    assert_non_null(strstr(trace(&s), "PyTorchJob mnist is failed because 2 Worker replica(s) "
                                      "failed. First failure: mnist-worker-1 (rank 2) was killed "
                                      "by signal 11 (SIGSEGV)\n"));
    close_scene(&s);
}

static void failures_in_words(void **state)
{
    (void)state;
    static const struct {
        struct control_failure failure;
        const char *text;
    } table[] = {
        {{true, "p", "pytorch", 1, 3, "Error", "", 0}, "p (rank 1) exited with code 3"},
        {{true, "p", "pytorch", 1, 128, "StartError", "no such file", 0},
         "p (rank 1) exited with code 128: no such file"},
        {{true, "p", "pytorch", 0, 137, "Error", "", 0},
         "p (rank 0) was killed by signal 9 (SIGKILL)"},
        {{true, "p", "pytorch", 0, 137, "OOMKilled", "", 0},
         "p (rank 0) ran out of memory and was killed (exit code 137)"},
        {{true, "p", "pytorch", 0, 1, "OOMKilled", "", 0},
         "p (rank 0) ran out of memory: a process of it was killed (exit code 1)"},
        {{true, "p", "get-data", 0, 1, "Error", "", 0},
         "container get-data of p (rank 0) exited with code 1"},
        {{true, "p", "", 0, -1, "Evicted", "low on memory", 0},
         "p (rank 0) failed: Evicted: low on memory"},
        {{true, "p", "pytorch", 0, 255, "Error", "", 0}, "p (rank 0) exited with code 255"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct buf text;
        buf_init(&text, 4096);
        control_failure_text(&table[i].failure, &text);
        assert_string_equal(buf_str(&text), table[i].text);
        buf_done(&text);
    }
}

/* The next operator's clock may be an hour behind the previous one's. */
static void a_clock_that_goes_back_holds_up_nobody(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "ExitCode", "{}"));
    for (int i = 0; i < 2; i++) {
        char uid[32];
        char at[TIMESTAMP_BYTES];
        s.now_s = 7200 + i;
        json_t *pod = add_pod(&s, "Master", 0, "Failed");
        snprintf(uid, sizeof uid, "made-%d", i);
        doc_set_text(pod, "metadata.uid", uid);
        set_ended(pod, 137, "Error", timestamp_seconds(EPOCH + s.now_s * 1000, at));
        step(&s);
        json_array_clear(s.pods);
    }
    step(&s);
    step(&s);
    assert_int_equal(count(&s, "create pod"), 0); /* it waits for 10 s */
    s.now_s = 3600;
    step(&s);
    assert_int_equal(count(&s, "create pod"), 1);
    close_scene(&s);
}

/* A job is exported and created again by `kubectl get -o yaml`, `delete`, `create`. */
static void counts_of_an_exported_job_are_forgotten(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "OnFailure", "{'backoffLimit': 0}"));
    json_object_update_new(doc_at(s.job, "metadata.annotations"),
                           json_pack("{s:s, s:s}", "muster.dev/failures", "7", "muster.dev/counted",
                                     "{\"job\":\"another\",\"pod-0\":7}"));
    step(&s);
    assert_int_equal(count(&s, "create pod"), 1);
    set_ended(add_pod(&s, "Master", 0, "Running"), 1, "Error", "2026-01-01T00:00:00Z");
    step(&s);
    assert_int_equal(doc_int(s.job, "status.counters.failures", 0), 1);
    close_scene(&s);
}

/* TestPastBackoffLimit. There as many failures as the limit are already too many, and no more are
 * counted. */
static void failures_past_the_limit_end_the_job(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        int restarts;
        bool past;
    } table[] = {{"{'backoffLimit': 0}", 0, false},
                 {"{'backoffLimit': 0}", 1, true},
                 {"{'backoffLimit': 3}", 3, false},
                 {"{'backoffLimit': 3}", 4, true}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_scene(&s, make_job(false, 3, "OnFailure", table[i].policy));
        add_pod(&s, "Worker", 0, "Running");
        add_pod(&s, "Worker", 1, "Succeeded");
        doc_set(add_pod(&s, "Worker", 2, "Running"), "status.containerStatuses",
                json_pack("[{s:s, s:i}]", "name", "pytorch", "restartCount", table[i].restarts));
        step(&s);
        assert_int_equal(count(&s, "reached the specified backoff limit"), table[i].past);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_replicas),
        cmocka_unit_test(failures_after_the_end_are_still_counted),
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(an_evicted_pod_is_made_anew),
        cmocka_unit_test(pods_made_anew_wait_longer_each_time),
        cmocka_unit_test(the_first_failure_is_named),
        cmocka_unit_test(failures_in_words),
        cmocka_unit_test(a_clock_that_goes_back_holds_up_nobody),
        cmocka_unit_test(counts_of_an_exported_job_are_forgotten),
        cmocka_unit_test(failures_past_the_limit_end_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
