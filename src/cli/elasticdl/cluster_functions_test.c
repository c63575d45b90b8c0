/* Checks what the functions in the file of --cluster_spec are given, and what a job takes from
 * their answers. The answers in these tests are the questions, changed as such a file would change
 * them. */
#include "cli/elasticdl/cluster_functions.h"

#include "base/testing/test_doc.h"

static json_t *make_job(void)
{
    return parse(
        "{'metadata': {'name': 'j', 'namespace': 'team'}, 'spec': {'pytorchReplicaSpecs': {"
        "'Master': {'replicas': 1, 'restartPolicy': 'OnFailure', 'template': {'spec': {"
        "'containers': [{'name': 'pytorch', 'image': 'muster'}]}}},"
        "'Worker': {'replicas': 2, 'restartPolicy': 'ExitCode', 'template': {'spec': {"
        "'containers': [{'name': 'pytorch', 'image': 'own'}]}}}}}}");
}

static json_t *ask(const json_t *job)
{
    json_t *asked = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(cluster_functions_ask(job, &asked, &err), 0);
    return asked;
}

static void check_text(const json_t *doc, const char *path, const char *expected)
{
    assert_string_equal(doc_text(doc, path, "(missing)"), expected);
}

static void functions_are_given_each_role(void **state)
{
    (void)state;
    json_t *job = make_job();
    json_t *asked = ask(job);
    static const char *const texts[][2] = {
        {"pods.0.kind", "Pod"},
        {"pods.0.metadata.name", "elasticdl-j-master"},
        {"pods.0.metadata.namespace", "team"},
        {"pods.0.metadata.labels.app", "elasticdl"},
        {"pods.0.metadata.labels.elasticdl-job-name", "j"},
        {"pods.0.metadata.labels.elasticdl-replica-type", "master"},
        {"pods.0.spec.restartPolicy", "OnFailure"},
        {"pods.0.spec.containers.0.image", "muster"},
        {"pods.1.metadata.name", "j-edljob-worker-0"},
        {"pods.1.metadata.labels.elasticdl-replica-type", "worker"},
        {"pods.1.spec.restartPolicy", "Never"},
        {"pods.1.spec.containers.0.image", "own"},
        {"services.0.kind", "Service"},
        {"services.0.metadata.name", "j-master-0"},
        {"services.1.metadata.name", "j-worker-0"},
        {"services.1.spec.clusterIP", "None"},
        {"services.1.spec.type", "ClusterIP"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_text(asked, texts[i][0], texts[i][1]);
    }
    assert_true(json_is_object(doc_at(asked, "pods.0.metadata.annotations")));
    assert_null(doc_at(job, "spec.pytorchReplicaSpecs.Master.template.spec.restartPolicy"));
    json_decref(asked);
    json_decref(job);
}

static void what_a_pod_may_say_becomes_the_templates(void **state)
{
    (void)state;
    json_t *job = make_job();
    json_t *asked = ask(job);
    json_t *answer = json_deep_copy(asked);
    struct muster_err err = MUSTER_ERR_INIT;
    json_t *pod = json_array_get(json_object_get(answer, "pods"), 1);
    doc_set_text(pod, "metadata.labels.pool", "gpu");
    doc_set_text(pod, "metadata.annotations.note", "n");
    doc_set_text(pod, "spec.restartPolicy", "Always");
    doc_set_text(pod, "spec.nodeName", "n1");
    doc_set(json_array_get(json_object_get(answer, "pods"), 0), "metadata.annotations",
            json_null());
    json_object_del(doc_at(answer, "services.0.metadata"), "annotations"); /* a file may do this */
    assert_int_equal(cluster_functions_take(job, asked, answer, &err), 0);

    const json_t *worker = doc_at(job, "spec.pytorchReplicaSpecs.Worker");
    check_text(worker, "restartPolicy", "Always");
    check_text(worker, "template.metadata.labels.app", "elasticdl");
    check_text(worker, "template.metadata.labels.pool", "gpu");
    check_text(worker, "template.metadata.annotations.note", "n");
    check_text(worker, "template.spec.nodeName", "n1");
    check_text(worker, "template.spec.containers.0.image", "own");
    const json_t *master = doc_at(job, "spec.pytorchReplicaSpecs.Master");
    check_text(master, "restartPolicy", "OnFailure");
    check_text(master, "template.metadata.labels.elasticdl-replica-type", "master");
    const char *const absent[] = {"template.metadata.annotations", "template.metadata.name",
                                  "template.spec.restartPolicy", "template.spec.nodeName"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        assert_null(doc_at(master, absent[i]));
    }
    assert_null(doc_at(worker, "template.spec.restartPolicy"));
    json_decref(answer);
    json_decref(asked);
    json_decref(job);
}

static void functions_that_change_nothing_leave_the_job(void **state)
{
    (void)state;
    json_t *job = make_job();
    json_t *before = json_deep_copy(job);
    json_t *asked = ask(job);
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(cluster_functions_take(job, asked, asked, &err), 0);
    for (const char *const *role = (const char *const[]){"Master", "Worker", NULL}; *role; role++) {
        json_t *specs = doc_at(job, "spec.pytorchReplicaSpecs");
        json_t *template = json_object_get(json_object_get(specs, *role), "template");
        check_text(template, "metadata.labels.app", "elasticdl"); /* all ElasticDL pods have it */
        json_object_del(template, "metadata");
    }
    assert_true(json_equal(job, before));
    assert_string_equal(doc_text(asked, "pods.1.spec.restartPolicy", ""), "Never");
    json_decref(asked);
    json_decref(before);
    json_decref(job);
}

static void what_a_job_cannot_say_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        size_t index;
        const char *path, *value, *says;
    } table[] = {
        {"pods", 0, "metadata.name", "other", "with_pod changes metadata.name"},
        {"pods", 1, "metadata.namespace", "other", "with_pod changes metadata.namespace"},
        {"pods", 1, "metadata.generateName", "x", "with_pod changes metadata.generateName"},
        {"services", 0, "spec.type", "NodePort", "with_service changes spec.type"},
        {"services", 1, "spec.clusterIP", "10.0.0.1", "with_service changes spec.clusterIP"},
        {"services", 1, "spec.externalName", "x", "with_service changes spec.externalName"},
        {"services", 0, "metadata.annotations.a", "b", "with_service changes metadata.annotations"},
        {"services", 0, "metadata.labels.app", "b", "with_service changes metadata.labels"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *job = make_job();
        json_t *before = json_deep_copy(job);
        json_t *asked = ask(job);
        json_t *answer = json_deep_copy(asked);
        json_t *object = json_array_get(json_object_get(answer, table[i].kind), table[i].index);
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(doc_set_text(object, table[i].path, table[i].value), 0);
        assert_int_equal(cluster_functions_take(job, asked, answer, &err), MUSTER_EDATA);
        if (!strstr(err.text, table[i].says)) {
            fail_msg("'%s' does not say '%s'", err.text, table[i].says);
        }
        assert_true(json_equal(job, before));
        json_decref(answer);
        json_decref(asked);
        json_decref(before);
        json_decref(job);
    }
}

static void an_answer_without_what_was_asked_is_refused(void **state)
{
    (void)state;
    static const char *const answers[] = {"{}", "[]", "{'pods': [], 'services': []}",
                                          "{'pods': [{}, {}], 'services': [{}, {}]}"};
    json_t *job = make_job();
    json_t *asked = ask(job);
    struct muster_err err = MUSTER_ERR_INIT;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        json_t *answer = parse(answers[i]);
        assert_int_equal(cluster_functions_take(job, asked, answer, &err), MUSTER_EDATA);
        json_decref(answer);
    }
    json_t *answer = json_deep_copy(asked);
    json_object_del(json_array_get(json_object_get(answer, "pods"), 0), "spec");
    assert_int_equal(cluster_functions_take(job, asked, answer, &err), MUSTER_EDATA);
    assert_non_null(strstr(err.text, "without a spec"));
    json_decref(answer);
    json_decref(asked);
    json_decref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_given_each_role),
        cmocka_unit_test(what_a_pod_may_say_becomes_the_templates),
        cmocka_unit_test(functions_that_change_nothing_leave_the_job),
        cmocka_unit_test(what_a_job_cannot_say_is_refused),
        cmocka_unit_test(an_answer_without_what_was_asked_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
