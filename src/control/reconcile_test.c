/* Checks single steps: from a view to the trace of the effects. test/simulation tests whole lives
 * of jobs. Names in comments are upstream's tests, which show the same facts. */
#include "control/scene.h"

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
    } table[] = {{"{}", true},
                 {"{'managedBy': 'kubeflow.org/training-operator'}", true},
                 {"{'managedBy': 'other-job-controller'}", false},
                 {"{'managedBy': 'kueue.x-k8s.io/multikueue'}", false},
                 {"{'managedBy': ''}", false}}; /* TestManagedByExternalController */
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
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

/* Issue #1976: labels do not prove that an object belongs to the job. */
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
    assert_string_equal(
        buf_str(&text),
        "event Warning FailedUpdateJobStatus: Error updating the status: quota is used up\n"
        "event Warning FailedCreatePod: Error creating: quota is used up\n"
        "event Warning FailedCreateService: Error creating: quota is used up\n");
    buf_done(&text);
    control_effects_done(&fx);
    close_scene(&s);
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

/* The number of effects of a step is limited; the next step, which is requested at once, does the
 * rest. */
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

/* An annotation may contain any uid: neither "" nor one of 300 bytes is a path in a document. */
static void damaged_annotations_count_as_empty(void **state)
{
    (void)state;
    char long_uid[400];
    snprintf(long_uid, sizeof long_uid, "{\"master-0\": {\"uid\": \"%0300d\"}}", 1);
    const char *const restarts[] = {"[1]", "{\"master-0\": {}}",
                                    "{\"master-0\": {\"uid\": \"a.b\"}}", long_uid};
    for (size_t i = 0; i < sizeof restarts / sizeof restarts[0]; i++) {
        struct scene s;
        open_scene(&s, make_job(true, -1, "ExitCode", "{'backoffLimit': 5}"));
        json_object_update_new(doc_at(s.job, "metadata.annotations"),
                               json_pack("{s:s, s:s, s:s}", "muster.dev/failures",
                                         "99999999999999999999", "muster.dev/counted",
                                         i == 0 ? "{" : "{\"a\": {\"b\": 2}}",
                                         "muster.dev/restarts", restarts[i]));
        set_ended(add_pod(&s, "Master", 0, "Failed"), 137, "Error", "never");
        step(&s);
        assert_document(doc_at(s.job, "status.counters"),
                        "{'failures': 1, 'replicas': {'master-0': {'uid': 'pod-0', 'failures': 1, "
                        "'remakes': 1, 'at': 1767225600000, 'remade': true}}}");
        close_scene(&s);
    }
}

static void a_job_that_cannot_be_read_is_refused(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, parse("{'metadata': {'name': 'x'}, 'spec': {'pytorchReplicaSpecs': null}}"));
    const struct control_view view = {.job = s.job,
                                      .pods = s.pods,
                                      .services = s.services,
                                      .claims = s.claims,
                                      .now_unix_ms = EPOCH,
                                      .target = s.target};
    struct control_effects fx;
    struct muster_err err = MUSTER_ERR_INIT;
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
        cmocka_unit_test(claims_are_made_once_and_before_their_pod),
        cmocka_unit_test(a_policy_in_the_template_is_warned_of_once),
        cmocka_unit_test(a_large_job_is_made_in_pieces),
        cmocka_unit_test(damaged_annotations_count_as_empty),
        cmocka_unit_test(a_job_that_cannot_be_read_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
