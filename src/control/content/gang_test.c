/* Checks jobs whose pods start together: their PodGroup, and when their pods are created. */
#include "control/companions.h"
#include "control/scene.h"

#define POLICY(fields) "{'schedulingPolicy': {" fields "}}"

static void set_resources(json_t *job, const char *role, const char *resources)
{
    json_t *template =
        json_object_get(json_object_get(doc_at(job, "spec.pytorchReplicaSpecs"), role), "template");
    json_object_set_new(doc_at(template, "spec.containers.0"), "resources", parse(resources));
}

/* Opens a scene with a Master and a Worker that request resources. */
static void open_gang(struct scene *s, enum control_gang_kind kind, const char *run_policy)
{
    open_scene(s, make_job(true, 1, "Never", run_policy));
    s->target = CONTROL_TARGET_CLUSTER;
    s->pod_groups = json_array();
    s->gang = (struct control_gang){
        kind, kind == CONTROL_GANG_VOLCANO ? "volcano" : "scheduler-plugins-scheduler"};
    set_resources(s->job, "Worker",
                  "{'requests': {'cpu': '1500m', 'memory': '512Mi'}, 'limits': {'cpu': 4, "
                  "'nvidia.com/gpu': 1}}");
    set_resources(s->job, "Master", "{'limits': {'cpu': 0.5, 'memory': '1Gi'}}");
}

static json_t *add_group(struct scene *s, const char *phase)
{
    struct job job;
    assert_int_equal(job_read(s->job, &job, NULL), 0);
    json_t *made = control_make_pod_group(&job, &s->gang);
    job_done(&job);
    doc_set_text(made, "metadata.uid", "group-1");
    doc_set_text(made, "status.phase", phase);
    json_array_append_new(s->pod_groups, made);
    return made;
}

/* Returns the first pod that a step creates. */
static json_t *first_pod(struct scene *s)
{
    struct control_effects fx = effects_of(s);
    json_t *pod = NULL;
    for (size_t i = 0; i < fx.count && !pod; i++) {
        pod = control_is(&fx.list[i], CONTROL_CREATE, CONTROL_POD) ? json_incref(fx.list[i].object)
                                                                   : NULL;
    }
    control_effects_done(&fx);
    assert_non_null(pod);
    return pod;
}

static void a_group_is_upstreams(void **state)
{
    (void)state;
    struct scene s;
    open_gang(&s, CONTROL_GANG_VOLCANO,
              POLICY("'queue': 'fast', 'priorityClass': 'high', 'scheduleTimeoutSeconds': 9"));
    doc_set(s.job, "metadata.annotations",
            parse("{'a': 'b', 'kubectl.kubernetes.io/last-applied-configuration': '{}'}"));
    json_t *made = add_group(&s, "Inqueue");
    assert_string_equal(doc_text(made, "apiVersion", ""), "scheduling.volcano.sh/v1beta1");
    assert_string_equal(doc_text(made, "metadata.ownerReferences.0.uid", ""), "job-1");
    assert_document(doc_at(made, "metadata.annotations"), "{'a': 'b'}");
    assert_document(doc_at(made, "spec"),
                    "{'minMember': 2, 'queue': 'fast', 'priorityClassName': 'high', "
                    "'minResources': {'cpu': '2', 'memory': '1536Mi', 'nvidia.com/gpu': '1'}}");
    close_scene(&s);
}

static void one_of_scheduler_plugins_has_a_timeout(void **state)
{
    (void)state;
    struct scene s;
    open_gang(&s, CONTROL_GANG_PLUGINS,
              POLICY("'minAvailable': 1, 'queue': 'q', 'scheduleTimeoutSeconds': 9"));
    json_t *made = add_group(&s, "");
    assert_string_equal(doc_text(made, "apiVersion", ""), "scheduling.x-k8s.io/v1alpha1");
    assert_document(doc_at(made, "spec"),
                    "{'minMember': 1, 'scheduleTimeoutSeconds': 9, 'minResources': {'cpu': '500m', "
                    "'memory': '1Gi'}}");
    close_scene(&s);
    open_gang(&s, CONTROL_GANG_PLUGINS, POLICY("'minResources': {'cpu': '7'}"));
    assert_document(doc_at(add_group(&s, ""), "spec"),
                    "{'minMember': 2, 'minResources': {'cpu': '7'}}");
    close_scene(&s);
}

/* Volcano must admit a PodGroup before the job's pods are created. */
static void pods_wait_until_volcano_admits_them(void **state)
{
    (void)state;
    struct scene s;
    open_gang(&s, CONTROL_GANG_VOLCANO, "{}");
    step(&s);
    assert_int_equal(count(&s, "create pod group mnist"), 1);
    assert_int_equal(count(&s, "create pod mnist"), 0);
    json_t *group = add_group(&s, "Pending");
    step(&s);
    assert_int_equal(count(&s, "create"), 0);
    doc_set_text(group, "status.phase", "Inqueue");
    json_t *pod = first_pod(&s);
    assert_string_equal(doc_text(pod, "spec.schedulerName", ""), "volcano");
    assert_document(doc_at(pod, "metadata.annotations"),
                    "{'scheduling.k8s.io/group-name': 'mnist', 'volcano.sh/task-spec': 'master'}");
    json_decref(pod);
    step(&s);
    assert_int_equal(count(&s, "create pod mnist"), 2);
    assert_int_equal(count(&s, "update"), 0);
    close_scene(&s);
}

static void pods_of_scheduler_plugins_follow_their_group(void **state)
{
    (void)state;
    struct scene s;
    open_gang(&s, CONTROL_GANG_PLUGINS, "{}");
    step(&s);
    assert_int_equal(count(&s, "create pod group mnist"), 1);
    assert_int_equal(count(&s, "create pod mnist"), 0);
    add_group(&s, "");
    json_t *pod = first_pod(&s);
    assert_string_equal(doc_text(pod, "spec.schedulerName", ""), "scheduler-plugins-scheduler");
    const json_t *labels = doc_at(pod, "metadata.labels");
    assert_string_equal(json_string_value(json_object_get(labels, "scheduling.x-k8s.io/pod-group")),
                        "mnist");
    json_decref(pod);
    close_scene(&s);
}

static void a_group_follows_its_job(void **state)
{
    (void)state;
    struct scene s;
    open_gang(&s, CONTROL_GANG_VOLCANO, POLICY("'queue': 'q'"));
    doc_set_text(add_group(&s, "Running"), "spec.queue", "theirs"); /* this queue is kept */
    step(&s);
    assert_int_equal(count(&s, "update pod group"), 0);
    doc_set_int(s.job, "spec.pytorchReplicaSpecs.Worker.replicas", 3);
    step(&s);
    assert_int_equal(count(&s, "update pod group mnist"), 1);
    close_scene(&s);
}

static void it_goes_when_its_job_ends_or_is_suspended(void **state)
{
    (void)state;
    struct scene s;
    open_gang(&s, CONTROL_GANG_VOLCANO, "{}");
    add_group(&s, "Running");
    doc_set(s.job, "spec.runPolicy.suspend", json_true());
    step(&s);
    assert_int_equal(count(&s, "delete pod group mnist"), 1);
    close_scene(&s);
    open_gang(&s, CONTROL_GANG_VOLCANO, "{}");
    json_t *group = add_group(&s, "Running");
    add_pod(&s, "Master", 0, "Succeeded");
    step(&s);
    assert_int_equal(count(&s, "delete pod group mnist"), 1);
    doc_set_text(group, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z");
    step(&s);
    assert_int_equal(count(&s, "pod group"), 0);
    close_scene(&s);
}

/* If the cluster has no PodGroups, the job's pods wait, and this is reported once. */
static void where_there_are_none_jobs_wait(void **state)
{
    (void)state;
    struct scene s;
    open_gang(&s, CONTROL_GANG_VOLCANO, "{}");
    json_decref(s.pod_groups);
    s.pod_groups = NULL;
    step(&s);
    assert_int_equal(count(&s, "Warning FailedCreatePodGroup"), 1);
    assert_int_equal(count(&s, "create"), 0);
    step(&s);
    assert_int_equal(count(&s, "Warning"), 0);
    close_scene(&s);
}

static void who_names_another_scheduler_is_not_in_the_gang(void **state)
{
    (void)state;
    struct scene s;
    open_gang(&s, CONTROL_GANG_VOLCANO, "{}");
    doc_set_text(s.job, "spec.pytorchReplicaSpecs.Worker.template.spec.schedulerName", "other");
    step(&s); /* only the Master's pod is in the group */
    assert_int_equal(count(&s, "Warning SetPodTemplateSchedulerName"), 1);
    assert_int_equal(count(&s, "create pod group mnist"), 1);
    close_scene(&s);
    open_gang(&s, CONTROL_GANG_VOLCANO, "{}");
    doc_set_text(s.job, "spec.pytorchReplicaSpecs.Worker.template.spec.schedulerName", "other");
    doc_set_text(s.job, "spec.pytorchReplicaSpecs.Master.template.spec.schedulerName", "other");
    json_t *pod = first_pod(&s);
    assert_null(doc_at(pod, "metadata.annotations"));
    json_decref(pod);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_is_upstreams),
        cmocka_unit_test(one_of_scheduler_plugins_has_a_timeout),
        cmocka_unit_test(pods_wait_until_volcano_admits_them),
        cmocka_unit_test(pods_of_scheduler_plugins_follow_their_group),
        cmocka_unit_test(a_group_follows_its_job),
        cmocka_unit_test(it_goes_when_its_job_ends_or_is_suspended),
        cmocka_unit_test(where_there_are_none_jobs_wait),
        cmocka_unit_test(who_names_another_scheduler_is_not_in_the_gang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
