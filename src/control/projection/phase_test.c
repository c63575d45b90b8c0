/* Checks pods into which somebody else has put a container that keeps running: which phase they
 * have, and what the job does. */
#include "control/projection/phase.h"
#include "control/scene.h"

/* Sets a pod's container statuses from a list with commas: "pytorch 0" (ended with code 0), "mesh"
 * (runs), "mesh !" (has not started). */
static void set_containers(json_t *pod, const char *text)
{
    json_t *list = json_array();
    char copy[256];
    char *rest = copy;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *each = strsep(&rest, ","); each; each = strsep(&rest, ",")) {
        char *what = strchr(each, ' ');
        if (what) {
            *what++ = '\0';
        }
        json_t *state = !what          ? parse("{'running': {}}")
                        : *what == '!' ? parse("{'waiting': {'reason': 'ImagePullBackOff'}}")
                                       : json_pack("{s:{s:i, s:s, s:s}}", "terminated", "exitCode",
                                                   (int)strtol(what, NULL, 10), "reason", "Any",
                                                   "finishedAt", "2026-01-01T00:00:01Z");
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:o}", "name", each, "restartCount", 0, "state", state));
    }
    assert_int_equal(doc_set(pod, "status.containerStatuses", list), 0);
}

static void a_phase_by_the_own_containers(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *phase, *containers;
        enum control_phase own;
    } table[] = {
        {"Never", "Running", "pytorch 0,metrics 0,mesh", CONTROL_SUCCEEDED},
        {"Never", "Running", "mesh,metrics 0,pytorch 3", CONTROL_FAILED_PHASE},
        {"Never", "Running", "pytorch 0,metrics 1,mesh", CONTROL_FAILED_PHASE},
        {"ExitCode", "Running", "pytorch 137,metrics 0,mesh", CONTROL_FAILED_PHASE},
        {"OnFailure", "Running", "pytorch 0,metrics 0,mesh", CONTROL_SUCCEEDED},
        {"Never", "Unknown", "pytorch 0,metrics 0,mesh", CONTROL_SUCCEEDED},
        /* An image cannot be pulled: for the kubelet such a pod has not begun. */
        {"Never", "Pending", "pytorch 0,metrics 0,mesh !", CONTROL_SUCCEEDED},
        /* The kubelet starts it again. */
        {"OnFailure", "Running", "pytorch 1,metrics 0,mesh", CONTROL_RUNNING},
        {"Always", "Running", "pytorch 0,metrics 0,mesh", CONTROL_RUNNING},
        /* One of its own containers runs, or its state is unknown. */
        {"Never", "Running", "pytorch 0,metrics,mesh", CONTROL_RUNNING},
        {"Never", "Running", "pytorch 3,metrics !,mesh", CONTROL_RUNNING},
        {"Never", "Running", "pytorch 0,mesh", CONTROL_RUNNING},
        {"Never", "Running", "mesh 0", CONTROL_RUNNING},
        {"Never", "Pending", "mesh !", CONTROL_PENDING},
        /* Nothing was added to the pod: the kubelet's phase counts. */
        {"Never", "Running", "pytorch 0,metrics 0", CONTROL_RUNNING},
        {"Never", "Failed", "pytorch 0,metrics 0", CONTROL_FAILED_PHASE},
        /* Its own containers ended well before another container failed: the phase stays. */
        {"Never", "Failed", "pytorch 0,metrics 0,mesh 1", CONTROL_SUCCEEDED},
        {"Never", "Failed", "pytorch 0,mesh 1", CONTROL_FAILED_PHASE},
        {"Never", "Failed", "pytorch 2,metrics 0,mesh 0", CONTROL_FAILED_PHASE},
        {"Never", "Succeeded", "pytorch 0,metrics 0,mesh 0", CONTROL_SUCCEEDED},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *object = make_job(false, 1, table[i].policy, "{}");
        json_t *pod = json_object();
        struct job job;
        json_array_append_new(
            doc_at(object, "spec.pytorchReplicaSpecs.Worker.template.spec.containers"),
            parse("{'name': 'metrics', 'image': 'i'}"));
        doc_set_text(pod, "status.phase", table[i].phase);
        set_containers(pod, table[i].containers);
        assert_int_equal(job_read(object, &job, NULL), 0);
        enum control_phase own = control_own_phase(&job.replica[JOB_WORKER], pod);
        if (own != table[i].own) {
            fail_msg("row %zu: %d", i, own);
        }
        /* Once the pod is evicted, the ends of its containers do not count. */
        doc_set_text(pod, "status.reason", "Evicted");
        doc_set_text(pod, "status.phase", "Failed");
        assert_int_equal(control_own_phase(&job.replica[JOB_WORKER], pod), CONTROL_FAILED_PHASE);
        job_done(&job);
        json_decref(pod);
        json_decref(object);
    }
}

static void who_starts_it_again_is_not_known(void **state)
{
    (void)state;
    static const char *const own[] = {"{'restartPolicy': 'Always'}",
                                      "{'restartPolicyRules': [{'action': 'Restart'}]}"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        json_t *template = parse("{'spec': {'containers': [{'name': 'pytorch'}]}}");
        json_t *more = parse(own[i]);
        json_t *pod = parse("{'status': {'phase': 'Running'}}");
        json_object_update(json_array_get(doc_at(template, "spec.containers"), 0), more);
        struct job_replica replica = {
            .present = true, .template = template, .restart_policy = JOB_NEVER};
        set_containers(pod, "pytorch 0,mesh");
        assert_int_equal(control_own_phase(&replica, pod), CONTROL_RUNNING);
        json_decref(template);
        json_decref(more);
        json_decref(pod);
    }
}

static void open_with_mesh(struct scene *s, json_t *job)
{
    open_scene(s, job);
    set_containers(add_pod(s, "Master", 0, "Running"), "pytorch,mesh");
    set_containers(add_pod(s, "Worker", 0, "Running"), "pytorch,mesh");
    step(s);
}

/* Returns whether the condition, such as "Succeeded", is true for the job. */
static bool is(const struct scene *s, const char *condition)
{
    const json_t *found = doc_find(doc_at(s->job, "status.conditions"), "type", condition);
    return strcmp(doc_text(found, "status", ""), "True") == 0;
}

static void a_job_ends_while_others_run_on_in_its_pods(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        size_t deleted;
    } table[] = {{"{}", 0}, {"{'cleanPodPolicy': 'Running'}", 2}, {"{'cleanPodPolicy': 'All'}", 2}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_with_mesh(&s, make_job(true, 1, "OnFailure", table[i].policy));
        assert_true(is(&s, "Running"));
        set_containers(json_array_get(s.pods, 0), "pytorch 0,mesh");
        set_containers(json_array_get(s.pods, 1), "mesh,pytorch 0");
        step(&s);
        assert_true(is(&s, "Succeeded"));
        assert_int_equal(doc_int(s.status, "replicaStatuses.Master.succeeded", 0), 1);
        assert_int_equal(doc_int(s.status, "replicaStatuses.Worker.succeeded", 0), 1);
        assert_null(doc_at(s.status, "replicaStatuses.Worker.active"));
        assert_int_equal(count(&s, "delete pod"), table[i].deleted);
        close_scene(&s);
    }
}

static void a_failure_counts_while_others_run_on(void **state)
{
    (void)state;
    struct scene s;
    open_with_mesh(&s, make_job(true, 1, "Never", "{'cleanPodPolicy': 'Running'}"));
    set_containers(json_array_get(s.pods, 1), "mesh,pytorch 3");
    step(&s);
    assert_true(is(&s, "Failed"));
    assert_non_null(strstr(trace(&s), "1 Worker replica(s) failed. First failure: mnist-worker-0 "
                                      "(rank 1) exited with code 3"));
    assert_int_equal(count(&s, "delete pod"), 2);
    assert_int_equal(doc_int(s.status, "counters.failures", 0), 1);
    close_scene(&s);
}

/* The pod is deleted with its other containers, and is created again when it is gone; this counts
 * once. */
static void a_rank_is_made_again_while_others_run_on(void **state)
{
    (void)state;
    struct scene s;
    open_with_mesh(&s, make_job(true, 1, "ExitCode", "{'backoffLimit': 3}"));
    json_t *worker = json_array_get(s.pods, 1);
    set_containers(worker, "pytorch 137,mesh");
    step(&s);
    assert_true(is(&s, "Restarting"));
    assert_int_equal(count(&s, "delete pod mnist-worker-0"), 1);
    assert_int_equal(count(&s, "create pod"), 0);
    doc_set_text(worker, "metadata.deletionTimestamp", "2026-01-01T00:00:02Z");
    set_containers(worker, "pytorch 137,mesh 143");
    doc_set_text(worker, "status.phase", "Failed");
    step(&s);
    assert_int_equal(count(&s, "delete pod") + count(&s, "create pod"), 0);
    json_array_remove(s.pods, 1);
    s.now_s = 20;
    step(&s);
    assert_int_equal(count(&s, "create pod mnist-worker-0"), 1);
    assert_int_equal(doc_int(s.job, "status.counters.failures", 0), 1);
    close_scene(&s);
}

/* The kubelet calls such a pod Failed. The job continues all the same, and nothing is counted. */
static void what_others_do_later_is_no_failure(void **state)
{
    (void)state;
    struct scene s;
    json_t *job = make_job(false, 2, "Never", "{'backoffLimit': 0}");
    open_scene(&s, job);
    json_t *done = add_pod(&s, "Worker", 0, "Running");
    set_containers(done, "pytorch 0,mesh");
    set_containers(add_pod(&s, "Worker", 1, "Running"), "pytorch,mesh");
    step(&s);
    set_containers(done, "pytorch 0,mesh 137");
    doc_set_text(done, "status.phase", "Failed");
    step(&s);
    assert_true(is(&s, "Running"));
    assert_null(s.status);
    assert_int_equal(count(&s, "pod"), 0);
    set_containers(json_array_get(s.pods, 1), "pytorch 2,mesh");
    step(&s);
    assert_true(is(&s, "Failed"));
    assert_non_null(strstr(trace(&s), "First failure: mnist-worker-1 (rank 1) exited with code 2"));
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_phase_by_the_own_containers),
        cmocka_unit_test(who_starts_it_again_is_not_known),
        cmocka_unit_test(a_job_ends_while_others_run_on_in_its_pods),
        cmocka_unit_test(a_failure_counts_while_others_run_on),
        cmocka_unit_test(a_rank_is_made_again_while_others_run_on),
        cmocka_unit_test(what_others_do_later_is_no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
