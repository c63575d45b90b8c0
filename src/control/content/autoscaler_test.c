/* Checks when an elastic job gets a HorizontalPodAutoscaler, which one, and when it is deleted. */
#include "control/companions.h"
#include "control/scene.h"

#define CPU                                                                                        \
    "{'type': 'Resource', 'resource': {'name': 'cpu', 'target': {'type': 'Utilization', "          \
    "'averageUtilization': 80}}}"

static void open_elastic(struct scene *s, const char *policy)
{
    open_scene(s, make_job(false, 2, "Never", "{}"));
    doc_set(s->job, "spec.elasticPolicy", parse(policy));
    s->target = CONTROL_TARGET_CLUSTER;
    s->autoscalers = json_array();
}

/* Adds the autoscaler of this job to the cluster. */
static json_t *add_autoscaler(struct scene *s)
{
    struct job job;
    assert_int_equal(job_read(s->job, &job, NULL), 0);
    json_t *made = control_make_autoscaler(&job);
    job_done(&job);
    doc_set_text(made, "metadata.uid", "hpa-1");
    json_array_append_new(s->autoscalers, made);
    return made;
}

static void it_is_upstreams(void **state)
{
    (void)state;
    struct scene s;
    open_elastic(&s, "{'minReplicas': 1, 'maxReplicas': 3, 'metrics': [" CPU "]}");
    assert_document(
        add_autoscaler(&s),
        "{'apiVersion': 'autoscaling/v2', 'kind': 'HorizontalPodAutoscaler', 'metadata': {'name': "
        "'mnist', 'namespace': 'default', 'uid': 'hpa-1', 'ownerReferences': [{'apiVersion': "
        "'kubeflow.org/v1', 'kind': 'PyTorchJob', 'name': 'mnist', 'uid': 'job-1', 'controller': "
        "true, 'blockOwnerDeletion': true}]}, 'spec': {'scaleTargetRef': {'apiVersion': "
        "'kubeflow.org/v1', 'kind': 'PyTorchJob', 'name': 'mnist'}, 'minReplicas': 1, "
        "'maxReplicas': 3, 'metrics': [" CPU "]}}");
    close_scene(&s);
}

/* As upstream: each bound is the default of the other; if neither is given, both are the number of
 * Workers. */
static void bounds_have_defaults(void **state)
{
    (void)state;
    struct scene s;
    open_elastic(&s, "{'metrics': []}");
    const json_t *spec = doc_at(add_autoscaler(&s), "spec");
    assert_int_equal(doc_int(spec, "minReplicas", 0), 2);
    assert_int_equal(doc_int(spec, "maxReplicas", 0), 2);
    assert_null(doc_at(spec, "metrics"));
    close_scene(&s);
}

static void it_is_made_after_the_pods(void **state)
{
    (void)state;
    struct scene s;
    open_elastic(&s, "{'metrics': [" CPU "]}");
    step(&s);
    const char *made = strstr(trace(&s), "create autoscaler mnist\n");
    assert_non_null(made);
    assert_null(strstr(made, "create pod"));
    add_autoscaler(&s);
    step(&s);
    assert_int_equal(count(&s, "autoscaler"), 0);
    close_scene(&s);
}

static void it_follows_the_job(void **state)
{
    (void)state;
    struct scene s;
    open_elastic(&s, "{'maxReplicas': 3, 'metrics': [" CPU "]}");
    json_t *made = add_autoscaler(&s);
    doc_set(made, "spec.behavior", parse("{'scaleUp': {}}")); /* a default of the server */
    doc_set_int(s.job, "spec.elasticPolicy.maxReplicas", 5);
    struct control_effects fx = effects_of(&s);
    bool found = false;
    for (size_t i = 0; i < fx.count; i++) {
        if (control_is(&fx.list[i], CONTROL_UPDATE, CONTROL_AUTOSCALER)) {
            found = true;
            assert_string_equal(doc_text(fx.list[i].object, "metadata.uid", ""), "hpa-1");
            assert_int_equal(doc_int(fx.list[i].object, "spec.maxReplicas", 0), 5);
            assert_null(doc_at(fx.list[i].object, "spec.behavior"));
        }
    }
    assert_true(found);
    control_effects_done(&fx);
    close_scene(&s);
}

static void it_goes_with_its_reason(void **state)
{
    (void)state;
    struct scene s;
    open_elastic(&s, "{'metrics': [" CPU "]}");
    json_t *made = add_autoscaler(&s);
    doc_set(s.job, "spec.runPolicy.suspend", json_true());
    step(&s);
    assert_int_equal(count(&s, "delete autoscaler mnist"), 1);
    doc_set_text(made, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z");
    step(&s);
    assert_int_equal(count(&s, "autoscaler"), 0);
    doc_set(s.job, "spec.runPolicy.suspend", json_false());
    step(&s); /* the new one waits until the old one is deleted */
    assert_int_equal(count(&s, "autoscaler"), 0);
    json_object_del(doc_at(made, "metadata"), "deletionTimestamp");
    json_object_del(doc_at(s.job, "spec.elasticPolicy"), "metrics");
    step(&s);
    assert_int_equal(count(&s, "delete autoscaler mnist"), 1);
    close_scene(&s);
}

/* The autoscaler of a finished job is deleted with the job, as in upstream. */
static void one_of_a_finished_job_stays(void **state)
{
    (void)state;
    struct scene s;
    open_elastic(&s, "{'metrics': [" CPU "]}");
    add_autoscaler(&s);
    add_pod(&s, "Worker", 0, "Succeeded");
    step(&s);
    assert_int_equal(count(&s, "Succeeded"), 2);
    step(&s);
    assert_int_equal(count(&s, "autoscaler"), 0);
    close_scene(&s);
}

static void a_strangers_is_left_alone(void **state)
{
    (void)state;
    struct scene s;
    open_elastic(&s, "{'metrics': [" CPU "]}");
    doc_set_text(add_autoscaler(&s), "metadata.ownerReferences.0.uid", "other");
    doc_set(s.job, "spec.runPolicy.suspend", json_true());
    step(&s);
    assert_int_equal(count(&s, "autoscaler"), 0);
    close_scene(&s);
}

static void where_none_can_be_made_it_is_said_once(void **state)
{
    (void)state;
    struct scene s;
    open_elastic(&s, "{'metrics': [" CPU "]}");
    json_decref(s.autoscalers);
    s.autoscalers = NULL;
    step(&s);
    assert_int_equal(count(&s, "Warning FailedCreateHorizontalPodAutoscaler"), 1);
    assert_int_equal(count(&s, "create pod"), 2);
    step(&s);
    assert_int_equal(count(&s, "Warning"), 0);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_upstreams),
        cmocka_unit_test(bounds_have_defaults),
        cmocka_unit_test(it_is_made_after_the_pods),
        cmocka_unit_test(it_follows_the_job),
        cmocka_unit_test(it_goes_with_its_reason),
        cmocka_unit_test(one_of_a_finished_job_stays),
        cmocka_unit_test(a_strangers_is_left_alone),
        cmocka_unit_test(where_none_can_be_made_it_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
