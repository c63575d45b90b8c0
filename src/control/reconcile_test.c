/* Single steps: a view in, the trace of the effects out. Whole lives are in test/simulation. Names
 * in comments are upstream's tests whose facts are held here. */
#include "base/stamp.h"
#include "control/fixture.h"

#include <stdio.h>

#define EPOCH 1767225600000 /* 2026-01-01T00:00:00Z */

struct scene {
    json_t *job;
    json_t *pods;
    json_t *services;
    json_t *claims;
    int64_t now_s;  /* since EPOCH */
    int64_t now_ms; /* and so many more */
    struct buf trace;
    json_t *status; /* of the last step; NULL when it was not written */
};

static void open_scene(struct scene *s, json_t *job)
{
    *s = (struct scene){
        .job = job, .pods = json_array(), .services = json_array(), .claims = json_array()};
    buf_init(&s->trace, 1 << 20);
}

static void close_scene(struct scene *s)
{
    json_decref(s->job);
    json_decref(s->pods);
    json_decref(s->services);
    json_decref(s->claims);
    json_decref(s->status);
    buf_done(&s->trace);
}

static struct control_effects effects_of(const struct scene *s)
{
    const struct control_view view = {s->job, s->pods, s->services, s->claims,
                                      EPOCH + s->now_s * 1000 + s->now_ms};
    struct control_effects fx;
    struct muster_err err = {0};
    if (control_reconcile(&view, &fx, &err) != 0) {
        fail_msg("%s", err.text);
    }
    const char *broken = control_check_invariants(&view, &fx);
    if (broken) {
        fail_msg("%s", broken);
    }
    return fx;
}

/* Takes over what a step writes into the job, so that the next one sees it. */
static void step(struct scene *s)
{
    struct control_effects fx = effects_of(s);
    json_decref(s->status);
    s->status = NULL;
    buf_clear(&s->trace);
    for (size_t i = 0; i < fx.count; i++) {
        struct control_effect *e = &fx.list[i];
        if (e->kind == CONTROL_UPDATE_STATUS) {
            s->status = json_incref(e->object);
            doc_set(s->job, "status", json_deep_copy(e->object));
        } else if (e->kind == CONTROL_ANNOTATE) {
            json_object_update(doc_at(s->job, "metadata.annotations"), e->object);
        } else if (e->kind == CONTROL_WAKE_AT) {
            e->at_unix_ms = (e->at_unix_ms - EPOCH) / 1000;
        }
    }
    control_trace(&fx, &s->trace);
    control_effects_done(&fx);
}

static const char *trace(const struct scene *s)
{
    return buf_str(&s->trace);
}

static json_t *add_pod(struct scene *s, const char *role, int index, const char *phase)
{
    json_t *service = NULL;
    json_t *claims = NULL;
    json_t *pod = NULL;
    char uid[32];
    assert_int_equal(control_render(s->job, role, index, &pod, &service, &claims, NULL), 0);
    snprintf(uid, sizeof uid, "pod-%zu", json_array_size(s->pods));
    doc_set_text(pod, "metadata.uid", uid);
    doc_set_text(service, "metadata.uid", uid);
    doc_set_text(pod, "status.phase", phase);
    json_array_append_new(s->pods, pod);
    json_array_append_new(s->services, service);
    json_decref(claims);
    return pod;
}

static void set_ended(json_t *pod, int code, const char *reason, const char *at)
{
    json_t *list =
        json_pack("[{s:s, s:i, s:{s:{s:i, s:s, s:s}}}]", "name", "pytorch", "restartCount", 0,
                  "state", "terminated", "exitCode", code, "reason", reason, "finishedAt", at);
    assert_int_equal(doc_set(pod, "status.containerStatuses", list), 0);
}

static void set_condition(struct scene *s, const char *type, const char *completion)
{
    doc_set(s->job, "status.conditions",
            json_pack("[{s:s, s:s, s:s}]", "type", type, "status", "True", "reason", "Any"));
    doc_set_text(s->job, "status.completionTime", completion);
}

static size_t count(const struct scene *s, const char *word)
{
    size_t found = 0;
    for (const char *at = trace(s); (at = strstr(at, word)) != NULL; at++) {
        found++;
    }
    return found;
}

static void the_first_step_makes_everything_in_order(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, 1, "OnFailure", "{'activeDeadlineSeconds': 60}"));
    step(&s);
    assert_string_equal(trace(&s),
                        "status Created\n"
                        "create pod mnist-master-0\n"
                        "event Normal SuccessfulCreatePod: Created pod: mnist-master-0\n"
                        "create service mnist-master-0\n"
                        "event Normal SuccessfulCreateService: Created service: mnist-master-0\n"
                        "create pod mnist-worker-0\n"
                        "event Normal SuccessfulCreatePod: Created pod: mnist-worker-0\n"
                        "create service mnist-worker-0\n"
                        "event Normal SuccessfulCreateService: Created service: mnist-worker-0\n"
                        "wake 60\n");
    assert_string_equal(doc_text(s.status, "startTime", ""), "2026-01-01T00:00:00Z");
    close_scene(&s);
}

static void a_step_with_nothing_new_does_nothing(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, 1, "OnFailure", "{}"));
    add_pod(&s, "Master", 0, "Running");
    add_pod(&s, "Worker", 0, "Pending");
    step(&s);
    assert_string_equal(trace(&s), "status Created Running\n");
    s.now_s = 5;
    step(&s);
    assert_string_equal(trace(&s), "");
    close_scene(&s);
}

static void a_job_of_another_controller_is_left_alone(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        bool ours;
    } table[] = {{"{'managedBy': 'kubeflow.org/training-operator'}", true},
                 {"{'managedBy': 'kueue.x-k8s.io/multikueue'}", false},
                 {"{'managedBy': ''}", false}}; /* TestManagedByExternalController */
    for (size_t i = 0; i < 3; i++) {
        struct scene s;
        open_scene(&s, make_job(true, 1, "OnFailure", table[i].policy));
        step(&s);
        assert_int_equal(count(&s, "create pod"), table[i].ours ? 2 : 0);
        assert_true(table[i].ours || *trace(&s) == '\0');
        close_scene(&s);
    }
}

static void a_job_that_is_being_deleted_is_left_alone(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, 1, "OnFailure", "{}"));
    doc_set_text(s.job, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z");
    step(&s);
    assert_string_equal(trace(&s), "");
    close_scene(&s);
}

/* #1976: labels prove nothing. */
static void strangers_are_neither_counted_nor_deleted(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "Never", "{'cleanPodPolicy': 'All'}"));
    json_t *pod = add_pod(&s, "Master", 0, "Failed");
    doc_set(pod, "metadata.ownerReferences", json_array());
    doc_set(json_array_get(s.services, 0), "metadata.ownerReferences",
            parse("[{'uid': 'other', 'controller': true}]"));
    step(&s);
    assert_int_equal(count(&s, "delete"), 0);
    assert_int_equal(count(&s, "create pod mnist-master-0"), 1);
    assert_int_equal(count(&s, "create service mnist-master-0"), 1);
    assert_int_equal(count(&s, "Failed"), 0);
    close_scene(&s);
}

static void what_the_api_refuses_is_told(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "Never", "{}"));
    struct control_effects fx = effects_of(&s);
    struct buf text;
    buf_init(&text, 4096);
    for (size_t i = 0; i < fx.count; i++) {
        struct control_effects refusal;
        assert_int_equal(control_refused(&fx.list[i], "quota is used up", &refusal, NULL), 0);
        control_trace(&refusal, &text);
        control_effects_done(&refusal);
    }
    assert_string_equal(buf_str(&text),
                        "event Warning FailedCreatePod: Error creating: quota is used up\n"
                        "event Warning FailedCreateService: Error creating: quota is used up\n");
    buf_done(&text);
    control_effects_done(&fx);
    close_scene(&s);
}

/* TestDeletePodsAndServices, TestBackoffLimitExceededRespectsCleanPodPolicy. */
static void clean_up_by_policy(void **state)
{
    (void)state;
    static const struct {
        const char *condition, *policy;
        const char *left; /* of a running worker-0, a succeeded worker-1, a pending worker-2 */
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

/* startTime has whole seconds: without the milliseconds it would pass up to a second early. */
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

/* TestUpdateJobReplicaStatuses; pods past the range do not count here. */
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
    assert_int_equal(doc_int(worker, "failed", 0), 2);
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

/* A pod that failed with no container ended (evicted, its node lost) may run again. */
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

/* 0 s, 10, 20, …: as the kubelet restarts containers. What was counted is not counted again. */
static void pods_made_anew_wait_longer_each_time(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "ExitCode", "{}"));
    static const int delays[] = {0, 10, 20, 40, 80, 160, 300, 300};
    for (int i = 0; i < 8; i++) {
        char uid[32];
        char at[STAMP_BYTES];
        s.now_s += 5;
        json_t *pod = add_pod(&s, "Master", 0, "Failed");
        snprintf(uid, sizeof uid, "made-%d", i);
        doc_set_text(pod, "metadata.uid", uid);
        set_ended(pod, 137, "Error", stamp_seconds(EPOCH + s.now_s * 1000, at));
        step(&s);
        assert_int_equal(count(&s, "annotate"), 1);
        step(&s); /* the deletion was lost: it comes again, and nothing else */
        assert_int_equal(count(&s, "annotate"), 0);
        assert_int_equal(count(&s, "delete pod"), 1);
        json_array_clear(s.pods);
        if (delays[i] > 0) {
            char wake[32];
            s.now_s += delays[i] - 1;
            step(&s); /* writes that no pod is left */
            step(&s);
            snprintf(wake, sizeof wake, "wake %lld\n", (long long)s.now_s + 1);
            assert_string_equal(trace(&s), wake);
            s.now_s++;
        }
        step(&s);
        assert_int_equal(count(&s, "create pod"), 1);
    }
    const json_t *notes = doc_at(s.job, "metadata.annotations");
    assert_string_equal(json_string_value(json_object_get(notes, "muster.dev/failures")), "8");
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

static void claims_are_made_once_and_before_their_pod(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(false, 2, "Never", "{}"));
    doc_set(s.job, "spec.pytorchReplicaSpecs.Worker.volumeClaimTemplates",
            parse("[{'metadata': {'name': 'out'}, 'spec': {}}]"));
    json_array_append_new(s.claims, parse("{'metadata': {'name': 'out-mnist-worker-0'}}"));
    step(&s);
    assert_int_equal(count(&s, "create claim"), 1);
    assert_non_null(strstr(trace(&s), "create claim out-mnist-worker-1\n"
                                      "create pod mnist-worker-1\n"));
    close_scene(&s);
}

static void a_policy_in_the_template_is_warned_of_once(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(false, 3, "Never", "{}"));
    doc_set_text(s.job, "spec.pytorchReplicaSpecs.Worker.template.spec.restartPolicy", "Always");
    step(&s);
    assert_int_equal(count(&s, "Warning SetPodTemplateRestartPolicy"), 1);
    step(&s);
    assert_int_equal(count(&s, "Warning SetPodTemplateRestartPolicy"), 0);
    close_scene(&s);
}

/* A step has a limit; the rest comes with the next one, which is asked for at once. */
static void a_large_job_is_made_in_pieces(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(false, 700, "Never", "{}"));
    step(&s);
    assert_non_null(strstr(trace(&s), "wake 0\n"));
    size_t made = count(&s, "create pod");
    assert_true(made > 300 && made < 700);
    for (int i = 0; i < (int)made; i++) {
        add_pod(&s, "Worker", i, "Pending");
    }
    step(&s);
    assert_int_equal(count(&s, "create pod"), 700 - made);
    close_scene(&s);
}

static void damaged_annotations_count_as_empty(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "ExitCode", "{'backoffLimit': 5}"));
    json_object_update_new(doc_at(s.job, "metadata.annotations"),
                           parse("{'muster.dev/failures': '99999999999999999999', "
                                 "'muster.dev/counted': '{', 'muster.dev/restarts': '[1]'}"));
    set_ended(add_pod(&s, "Master", 0, "Failed"), 137, "Error", "never");
    step(&s);
    const json_t *notes = doc_at(s.job, "metadata.annotations");
    assert_string_equal(json_string_value(json_object_get(notes, "muster.dev/failures")), "1");
    assert_string_equal(json_string_value(json_object_get(notes, "muster.dev/counted")),
                        "{\"job\":\"job-1\",\"pod-0\":1}");
    close_scene(&s);
}

/* As after kubectl get -o yaml, delete, create. */
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
    const json_t *notes = doc_at(s.job, "metadata.annotations");
    assert_string_equal(json_string_value(json_object_get(notes, "muster.dev/failures")), "1");
    close_scene(&s);
}

static void a_job_that_cannot_be_read_is_refused(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, parse("{'metadata': {'name': 'x'}, 'spec': {'pytorchReplicaSpecs': null}}"));
    const struct control_view view = {s.job, s.pods, s.services, s.claims, EPOCH};
    struct control_effects fx;
    struct muster_err err = {0};
    assert_int_equal(control_reconcile(&view, &fx, &err), MUSTER_EDATA);
    assert_true(err.text[0] != '\0');
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_step_makes_everything_in_order),
        cmocka_unit_test(a_step_with_nothing_new_does_nothing),
        cmocka_unit_test(a_job_of_another_controller_is_left_alone),
        cmocka_unit_test(a_job_that_is_being_deleted_is_left_alone),
        cmocka_unit_test(strangers_are_neither_counted_nor_deleted),
        cmocka_unit_test(what_the_api_refuses_is_told),
        cmocka_unit_test(clean_up_by_policy),
        cmocka_unit_test(pods_that_already_go_are_not_deleted_again),
        cmocka_unit_test(a_deadline_passes_when_it_is_reached),
        cmocka_unit_test(a_deadline_counts_from_the_millisecond),
        cmocka_unit_test(the_ttl_counts_from_the_end),
        cmocka_unit_test(counts_of_replicas),
        cmocka_unit_test(failures_after_the_end_are_still_counted),
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(an_evicted_pod_is_made_anew),
        cmocka_unit_test(pods_made_anew_wait_longer_each_time),
        cmocka_unit_test(the_first_failure_is_named),
        cmocka_unit_test(failures_in_words),
        cmocka_unit_test(claims_are_made_once_and_before_their_pod),
        cmocka_unit_test(a_policy_in_the_template_is_warned_of_once),
        cmocka_unit_test(a_large_job_is_made_in_pieces),
        cmocka_unit_test(damaged_annotations_count_as_empty),
        cmocka_unit_test(counts_of_an_exported_job_are_forgotten),
        cmocka_unit_test(a_job_that_cannot_be_read_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
