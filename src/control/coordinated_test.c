/* Checks a job whose Master is the coordinator of its Workers, and the names that ElasticDL gives
 * to its pods. */
#include "control/scene.h"
#include "job/annotations.h"
#include "job/job.h"

static json_t *make_elastic(int workers, const char *restart, const char *policy)
{
    json_t *job = make_job(true, workers, restart, policy);
    json_t *notes = doc_at(job, "metadata.annotations");
    json_object_set_new(notes, JOB_ANNOTATION_COORDINATOR, json_string("Master"));
    json_object_set_new(notes, JOB_ANNOTATION_POD_NAMES, json_string("ElasticDL"));
    doc_set_text(job, "spec.pytorchReplicaSpecs.Master.restartPolicy", "OnFailure");
    return job;
}

static bool holds(const struct scene *s, const char *type)
{
    return job_condition(s->job, type) != NULL;
}

static void open_running(struct scene *s, int workers, const char *restart, const char *policy)
{
    open_scene(s, make_elastic(workers, restart, policy));
    add_pod(s, "Master", 0, "Running");
    for (int i = 0; i < workers; i++) {
        add_pod(s, "Worker", i, "Running");
    }
    step(s);
    assert_true(holds(s, "Running"));
}

static void end_worker(struct scene *s, int index, int code)
{
    json_t *pod = json_array_get(s->pods, (size_t)index + 1);
    doc_set_text(pod, "status.phase", code ? "Failed" : "Succeeded");
    set_ended(pod, code, code ? "Error" : "Completed", "2026-01-01T00:00:01Z");
}

static void pods_are_called_as_elasticdl_calls_them(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_elastic(2, "ExitCode", "{}"));
    step(&s);
    assert_int_equal(count(&s, "create pod elasticdl-mnist-master\n"), 1);
    assert_int_equal(count(&s, "create pod mnist-edljob-worker-0\n"), 1);
    assert_int_equal(count(&s, "create pod mnist-edljob-worker-1\n"), 1);
    assert_int_equal(count(&s, "create service mnist-master-0\n"), 1); /* others look this up */
    assert_int_equal(count(&s, "create service mnist-worker-1\n"), 1);
    add_pod(&s, "Master", 0, "Running");
    add_pod(&s, "Worker", 0, "Running");
    add_pod(&s, "Worker", 1, "Running");
    step(&s); /* the names identify the pods */
    assert_int_equal(count(&s, "create"), 0);
    assert_int_equal(count(&s, "delete"), 0);
    assert_true(holds(&s, "Running"));
    close_scene(&s);
}

static void a_name_that_is_not_the_schemes_is_no_member(void **state)
{
    (void)state;
    static const char *const strange[] = {"mnist-worker-0", "mnist-edljob-worker-00",
                                          "mnist-edljob-worker-", "elasticdl-mnist-master-0"};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        struct scene s;
        char line[64];
        open_running(&s, 1, "ExitCode", "{}");
        json_t *pod = json_deep_copy(json_array_get(s.pods, 1));
        doc_set_text(pod, "metadata.name", strange[i]);
        doc_set_text(pod, "metadata.uid", "strange");
        json_array_append_new(s.pods, pod);
        step(&s);
        snprintf(line, sizeof line, "delete pod %s\n", strange[i]);
        assert_int_equal(count(&s, line), 1);
        assert_int_equal(count(&s, "delete pod"), 1);
        close_scene(&s);
    }
}

static char *env_of(json_t *job, const char *role, int index)
{
    json_t *pod = NULL, *service = NULL, *claims = NULL;
    struct buf text;
    buf_init(&text, 1 << 14);
    assert_int_equal(control_render(job, role, index, &pod, &service, &claims, NULL), 0);
    size_t at;
    json_t *each;
    json_array_foreach (doc_at(pod, "spec.containers.0.env"), at, each) {
        buf_format(&text, "%s=%s ", doc_text(each, "name", "?"), doc_text(each, "value", "?"));
    }
    char *copy = strdup(buf_str(&text));
    buf_done(&text);
    json_decref(pod);
    json_decref(service);
    json_decref(claims);
    return copy;
}

/* Contract 15: Workers have no RANK, WORLD_SIZE or MASTER_ADDR, which would make a process group of
 * 3. */
static void workers_have_no_ranks(void **state)
{
    (void)state;
    json_t *job = make_elastic(2, "ExitCode", "{}");
    char *master = env_of(job, "Master", 0);
    char *worker = env_of(job, "Worker", 1);
    assert_string_equal(master, "PYTHONUNBUFFERED=1 MUSTER_JOB=mnist MUSTER_JOB_UID=job-1 ");
    assert_string_equal(worker, "PYTHONUNBUFFERED=1 WORKER_ID=1 ");
    free(worker);
    json_t *container = doc_at(job, "spec.pytorchReplicaSpecs.Worker.template.spec.containers.0");
    json_object_set_new(container, "env", parse("[{'name': 'PYTHONUNBUFFERED', 'value': 'true'}]"));
    worker = env_of(job, "Worker", 1);
    assert_string_equal(worker, "PYTHONUNBUFFERED=true WORKER_ID=1 ");
    free(master);
    free(worker);
    json_decref(job);
}

/* If a coordinator's pod was deleted, or evicted by its node, the next pod has the same name, and
 * reads the journal if the journal outlives the pod. */
static void a_coordinator_whose_pod_is_gone_is_made_again(void **state)
{
    (void)state;
    struct scene s;
    open_running(&s, 2, "ExitCode", "{'backoffLimit': 3}");
    json_array_remove(s.pods, 0);
    step(&s);
    assert_int_equal(count(&s, "create pod elasticdl-mnist-master\n"), 1);
    assert_int_equal(count(&s, "delete pod"), 0); /* its Workers continue to train */
    json_t *evicted = add_pod(&s, "Master", 0, "Failed");
    doc_set_text(evicted, "metadata.uid", "evicted");
    doc_set_text(evicted, "status.reason", "Evicted");
    step(&s);
    assert_int_equal(count(&s, "delete pod elasticdl-mnist-master\n"), 1);
    assert_int_equal(count(&s, "delete pod"), 1);
    assert_false(holds(&s, "Failed"));
    json_array_remove(s.pods, json_array_size(s.pods) - 1);
    s.now_s = 60;
    step(&s);
    assert_int_equal(count(&s, "create pod elasticdl-mnist-master\n"), 1);
    assert_int_equal(count(&s, "delete pod"), 0);
    assert_false(holds(&s, "Failed"));
    close_scene(&s);
}

static void a_killed_worker_is_made_again_and_the_job_goes_on(void **state)
{
    (void)state;
    struct scene s;
    open_running(&s, 2, "ExitCode", "{'backoffLimit': 3}");
    end_worker(&s, 1, 137);
    s.now_s = 1;
    step(&s);
    assert_int_equal(count(&s, "delete pod mnist-edljob-worker-1\n"), 1);
    assert_int_equal(count(&s, "delete pod"), 1);
    assert_false(holds(&s, "Failed"));
    json_array_remove(s.pods, 2);
    step(&s);
    assert_int_equal(count(&s, "create pod mnist-edljob-worker-1\n"), 1); /* without a delay */
    close_scene(&s);
}

static void relaunches_are_bounded(void **state)
{
    (void)state;
    struct scene s;
    open_running(&s, 2, "ExitCode", "{'backoffLimit': 0}");
    end_worker(&s, 1, 137);
    step(&s);
    assert_true(holds(&s, "Failed"));
    assert_int_equal(count(&s, "backoff limit. First failure: mnist-edljob-worker-1 (rank 1) was "
                               "killed by signal 9"),
                     1);
    close_scene(&s);
}

/* backoffLimit does not count preemptions: each Worker is created again, and the next crash is the
 * first that counts. */
static void preempted_workers_cost_no_try(void **state)
{
    (void)state;
    struct scene s;
    open_running(&s, 2, "ExitCode", "{'backoffLimit': 0}");
    end_worker(&s, 1, 143);
    step(&s);
    json_t *disrupted = json_array_get(s.pods, 1);
    doc_set_text(disrupted, "status.phase", "Failed");
    doc_set(disrupted, "status.conditions",
            parse("[{'type': 'DisruptionTarget', 'status': 'True'}]"));
    step(&s);
    assert_false(holds(&s, "Failed"));
    assert_int_equal(count(&s, "delete pod"), 2);
    json_array_remove(s.pods, 2);
    json_array_remove(s.pods, 1);
    step(&s);
    assert_int_equal(count(&s, "create pod mnist-edljob-worker-0\n"), 1);
    assert_int_equal(count(&s, "create pod mnist-edljob-worker-1\n"), 1);
    doc_set_text(add_pod(&s, "Worker", 0, "Running"), "metadata.uid", "another");
    end_worker(&s, 0, 137);
    step(&s);
    assert_true(holds(&s, "Failed"));
    close_scene(&s);
}

/* ElasticDL would continue with one worker less, for ever, and report nothing. */
static void an_error_of_the_users_program_fails_the_job(void **state)
{
    (void)state;
    struct scene s;
    open_running(&s, 2, "ExitCode", "{'cleanPodPolicy': 'Running'}");
    end_worker(&s, 0, 1);
    step(&s);
    assert_true(holds(&s, "Failed"));
    assert_int_equal(count(&s, "First failure: mnist-edljob-worker-0 (rank 0) exited with code 1"),
                     1);
    assert_int_equal(count(&s, "delete pod elasticdl-mnist-master\n"), 1);
    assert_int_equal(count(&s, "delete pod mnist-edljob-worker-1\n"), 1);
    close_scene(&s);
}

static void without_relaunches_the_job_goes_on_until_no_worker_is_left(void **state)
{
    (void)state;
    struct scene s;
    open_running(&s, 2, "Never", "{}");
    end_worker(&s, 0, 1);
    step(&s);
    assert_false(holds(&s, "Failed"));
    assert_true(holds(&s, "Running"));
    assert_int_equal(count(&s, "delete pod"), 0);
    assert_int_equal(count(&s, "create pod"), 0);
    end_worker(&s, 1, 137);
    step(&s);
    assert_true(holds(&s, "Failed"));
    close_scene(&s);
}

static void end_coordinator(struct scene *s)
{
    doc_set_text(json_array_get(s->pods, 0), "status.phase", "Succeeded");
}

/* The job ends when its coordinator has ended, but Workers that evaluate after that get the time
 * for it. */
static void the_coordinators_end_is_the_jobs_when_workers_have_ended(void **state)
{
    (void)state;
    struct scene s;
    open_running(&s, 2, "ExitCode", "{'cleanPodPolicy': 'Running'}");
    end_worker(&s, 0, 0);
    step(&s);
    assert_false(holds(&s, "Succeeded")); /* more records may be left to train */
    end_coordinator(&s);
    s.now_s = 100;
    step(&s);
    assert_false(holds(&s, "Succeeded"));
    assert_true(holds(&s, "Running"));
    assert_int_equal(count(&s, "delete"), 0);
    end_worker(&s, 1, 0);
    step(&s);
    assert_true(holds(&s, "Succeeded"));
    close_scene(&s);
}

/* Workers that left their loops, or never began one, have exit code 0, but this does not end a job
 * that is not trained. */
static void workers_that_all_end_before_the_coordinator_have_left_the_job(void **state)
{
    (void)state;
    struct scene s;
    open_running(&s, 2, "ExitCode", "{'cleanPodPolicy': 'Running'}");
    end_worker(&s, 0, 0); /* each Worker ends 1 s after the job's start */
    step(&s);
    s.now_s = 3600;
    step(&s);
    assert_true(holds(&s, "Running")); /* the other one continues */
    end_worker(&s, 1, 0);
    s.now_s = 60;
    step(&s);
    assert_false(holds(&s, "Failed")); /* the coordinator may be about to report success */
    assert_int_equal(count(&s, "wake"), 1);
    s.now_s = 61;
    step(&s);
    assert_true(holds(&s, "Failed"));
    assert_int_equal(count(&s, "all of its Workers have ended with exit code 0, and its "
                               "coordinator still waits for records to be trained, or for a Worker "
                               "that joins the job (by muster.elastic"),
                     1);
    assert_int_equal(count(&s, "delete pod elasticdl-mnist-master\n"), 1);
    close_scene(&s);
}

/* After the training, a Worker that is killed while it evaluates does no harm if another one has
 * evaluated; a program that fails is reported. */
static void a_workers_end_after_the_training(void **state)
{
    (void)state;
    static const struct {
        int codes[2];
        const char *condition;
    } table[] = {{{0, 137}, "Succeeded"}, {{137, 0}, "Succeeded"}, {{0, 1}, "Failed"},
                 {{1, 0}, "Failed"},      {{137, 137}, "Failed"},  {{0, 0}, "Succeeded"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_running(&s, 2, "ExitCode", "{}");
        end_coordinator(&s);
        end_worker(&s, 0, table[i].codes[0]);
        step(&s);
        assert_int_equal(count(&s, "delete pod"), 0);
        assert_int_equal(count(&s, "create pod"), 0);
        end_worker(&s, 1, table[i].codes[1]);
        step(&s);
        assert_true(holds(&s, table[i].condition));
        close_scene(&s);
    }
}

/* When everything is trained, no Worker is created, neither after a scale-up nor in place of a lost
 * pod. */
static void no_worker_is_made_after_the_training(void **state)
{
    (void)state;
    struct scene s;
    open_running(&s, 2, "ExitCode", "{}");
    end_coordinator(&s);
    doc_set_int(s.job, "spec.pytorchReplicaSpecs.Worker.replicas", 3);
    step(&s);
    assert_int_equal(count(&s, "create pod"), 0);
    end_worker(&s, 0, 0);
    end_worker(&s, 1, 0);
    step(&s);
    assert_true(holds(&s, "Succeeded"));
    close_scene(&s);
}

/* A killed coordinator is restarted in its pod (OnFailure), which keeps the journal. After an exit
 * code of its own the pod still restarts it, so the job fails. */
static void a_killed_coordinator_comes_back_and_one_that_failed_does_not(void **state)
{
    (void)state;
    static const struct {
        int code;
        bool fails;
    } table[] = {{137, false}, {139, false}, {1, true}, {70, true}, {127, true}, {128, false}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_running(&s, 2, "ExitCode", "{}");
        json_t *list = json_pack("[{s:s, s:i, s:{s:{}}, s:{s:{s:i, s:s, s:s, s:s}}}]", "name",
                                 "pytorch", "restartCount", 1, "state", "running", "lastState",
                                 "terminated", "exitCode", table[i].code, "reason", "Error",
                                 "message", "record 41", "finishedAt", "2026-01-01T00:00:01Z");
        doc_set(json_array_get(s.pods, 0), "status.containerStatuses", list);
        step(&s);
        assert_int_equal(holds(&s, "Failed"), table[i].fails);
        assert_int_equal(count(&s, "its coordinator failed: record 41."), table[i].fails ? 1 : 0);
        assert_int_equal(count(&s, "First failure"), 0); /* the coordinator failed first */
        close_scene(&s);
    }
}

/* Returns the coordinator's container as a step creates it. */
static json_t *made_master(struct scene *s)
{
    struct control_effects fx = effects_of(s);
    json_t *container = NULL;
    for (size_t i = 0; i < fx.count; i++) {
        const struct control_effect *e = &fx.list[i];
        bool is_pod = e->verb == CONTROL_CREATE && e->resource == CONTROL_POD;
        if (is_pod && strstr(doc_text(e->object, "metadata.name", ""), "-master")) {
            assert_string_equal(doc_text(e->object, "spec.restartPolicy", ""), "OnFailure");
            container = json_incref(doc_at(e->object, "spec.containers.0"));
        } else if (is_pod) {
            assert_null(doc_at(e->object, "spec.containers.0.restartPolicyRules"));
        }
    }
    control_effects_done(&fx);
    assert_non_null(container);
    return container;
}

/* Clusters may support restart rules of containers. */
static void only_a_killed_coordinator_is_started_again_in_its_pod(void **state)
{
    (void)state;
    for (int rules = 0; rules < 2; rules++) {
        struct scene s;
        open_scene(&s, make_elastic(2, "ExitCode", "{}"));
        s.restart_rules = rules;
        json_t *container = made_master(&s);
        const json_t *codes = doc_at(container, "restartPolicyRules.0.exitCodes");
        assert_string_equal(doc_text(container, "restartPolicy", "none"), rules ? "Never" : "none");
        if (rules) {
            assert_string_equal(doc_text(container, "restartPolicyRules.0.action", ""), "Restart");
            assert_string_equal(doc_text(codes, "operator", ""), "NotIn");
            assert_int_equal(json_array_size(doc_at(codes, "values")), 128);
            assert_int_equal(json_integer_value(doc_at(codes, "values.127")), 127);
        }
        json_decref(container);
        close_scene(&s);
    }
}

/* A pod whose coordinator failed ends, and is not created again; after an eviction it is. */
static void a_coordinator_that_failed_is_not_made_again(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *reason;
        bool fails;
    } table[] = {{65, "", true}, {65, "Evicted", false}, {137, "", false}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_running(&s, 2, "ExitCode", "{}");
        json_t *master = json_array_get(s.pods, 0);
        doc_set_text(master, "status.phase", "Failed");
        set_ended(master, table[i].code, "Error", "2026-01-01T00:00:01Z");
        doc_set_text(doc_at(master, "status.containerStatuses.0.state.terminated"), "message",
                     "record 41");
        if (*table[i].reason) {
            doc_set_text(master, "status.reason", table[i].reason);
        }
        step(&s);
        assert_int_equal(holds(&s, "Failed"), table[i].fails);
        assert_int_equal(count(&s, "delete pod elasticdl-mnist-master"), !table[i].fails);
        assert_int_equal(count(&s, "its coordinator failed: record 41."), table[i].fails);
        close_scene(&s);
    }
}

/* The Worker and the coordinator may end in any order: the coordinator's message has the reason. */
static void a_worker_that_was_told_of_the_jobs_failure_waits_for_the_coordinators_end(void **state)
{
    (void)state;
    static const struct {
        int code;
        bool is_awaited;
    } table[] = {{65, true}, {64, false}, {1, false}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        for (int ends = 0; ends < 2; ends++) {
            struct scene s;
            open_running(&s, 2, "ExitCode", "{}");
            end_worker(&s, 0, table[i].code);
            s.now_s = 2;
            step(&s);
            assert_int_equal(holds(&s, "Failed"), !table[i].is_awaited);
            assert_int_equal(count(&s, "create pod"), 0);
            s.now_s = ends ? 3 : 11;
            if (ends) {
                json_t *master = json_array_get(s.pods, 0);
                doc_set_text(master, "status.phase", "Failed");
                set_ended(master, 65, "Error", "2026-01-01T00:00:02Z");
            }
            step(&s);
            assert_true(holds(&s, "Failed"));
            assert_int_equal(
                strstr(doc_text(job_condition(s.job, "Failed"), "message", ""),
                       ends ? "its coordinator failed" : "\"Worker\" replica(s) failed") != NULL,
                table[i].is_awaited || !ends);
            close_scene(&s);
        }
    }
}

static void scaling_makes_and_removes_workers_alone(void **state)
{
    (void)state;
    struct scene s;
    open_running(&s, 2, "ExitCode", "{}");
    doc_set_int(s.job, "spec.pytorchReplicaSpecs.Worker.replicas", 3);
    step(&s);
    assert_int_equal(count(&s, "create pod mnist-edljob-worker-2\n"), 1);
    assert_int_equal(count(&s, "delete pod"), 0);
    doc_set_int(s.job, "spec.pytorchReplicaSpecs.Worker.replicas", 1);
    step(&s);
    assert_int_equal(count(&s, "delete pod mnist-edljob-worker-1\n"), 1);
    assert_int_equal(count(&s, "delete pod"), 1);
    assert_int_equal(count(&s, "delete service mnist-worker-1\n"), 1);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_called_as_elasticdl_calls_them),
        cmocka_unit_test(a_name_that_is_not_the_schemes_is_no_member),
        cmocka_unit_test(workers_have_no_ranks),
        cmocka_unit_test(a_coordinator_whose_pod_is_gone_is_made_again),
        cmocka_unit_test(a_killed_worker_is_made_again_and_the_job_goes_on),
        cmocka_unit_test(relaunches_are_bounded),
        cmocka_unit_test(preempted_workers_cost_no_try),
        cmocka_unit_test(an_error_of_the_users_program_fails_the_job),
        cmocka_unit_test(without_relaunches_the_job_goes_on_until_no_worker_is_left),
        cmocka_unit_test(the_coordinators_end_is_the_jobs_when_workers_have_ended),
        cmocka_unit_test(workers_that_all_end_before_the_coordinator_have_left_the_job),
        cmocka_unit_test(a_workers_end_after_the_training),
        cmocka_unit_test(no_worker_is_made_after_the_training),
        cmocka_unit_test(a_killed_coordinator_comes_back_and_one_that_failed_does_not),
        cmocka_unit_test(only_a_killed_coordinator_is_started_again_in_its_pod),
        cmocka_unit_test(a_coordinator_that_failed_is_not_made_again),
        cmocka_unit_test(a_worker_that_was_told_of_the_jobs_failure_waits_for_the_coordinators_end),
        cmocka_unit_test(scaling_makes_and_removes_workers_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
