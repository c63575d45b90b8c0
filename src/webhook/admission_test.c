/* Checks which jobs and pods are refused, in which words, and which reviews are not checked. */
#include "webhook/admission.h"

#include "base/testing/test_doc.h"

#define TEMPLATE(image)                                                                            \
    "{'spec': {'initContainers': [{'name': 'fetch', 'image': 'ok.example/fetch'}], "               \
    "'containers': [{'name': 'pytorch', 'image': '" image "'}]}}"
#define JOB(replicas, image)                                                                       \
    "{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': 'a'}, 'spec': "  \
    "{'pytorchReplicaSpecs': {'Master': {'replicas': " replicas                                    \
    ", 'restartPolicy': 'OnFailure', 'template': " TEMPLATE(image) "}}}}"
#define POD(init, image)                                                                           \
    "{'metadata': {'name': 'a'}, 'spec': {'initContainers': [{'name': 'i', 'image': '" init        \
    "'}], 'containers': [{'name': 'c', 'image': '" image "'}]}}"

static json_t *review(const char *operation, const char *kind, const char *object,
                      const char *before)
{
    json_t *request =
        json_pack("{s:s, s:{s:s}, s:s}", "uid", "u", "kind", "kind", kind, "operation", operation);
    json_object_set_new(request, "object", object ? parse(object) : json_null());
    json_object_set_new(request, "oldObject", before ? parse(before) : json_null());
    return json_pack("{s:s, s:o}", "apiVersion", "admission.k8s.io/v1", "request", request);
}

/* Returns the message of the refusal, which the caller frees; "" if the review is allowed. */
static char *judged(const char *list, json_t *asked)
{
    struct images images = {0};
    if (list) {
        assert_int_equal(images_read(&images, list, NULL), 0);
    }
    json_t *answer = webhook_answer_admission(asked, &images);
    images_done(&images);
    json_decref(asked);
    assert_string_equal(doc_text(answer, "kind", ""), "AdmissionReview");
    assert_string_equal(doc_text(answer, "response.uid", ""), "u");
    bool allowed = doc_bool(answer, "response.allowed", false);
    char *message = strdup(doc_text(answer, "response.status.message", ""));
    assert_int_equal(allowed, !*message);
    json_decref(answer);
    return message;
}

static void expect_allowed(const char *list, json_t *asked)
{
    char *message = judged(list, asked);
    assert_string_equal(message, "");
    free(message);
}

static void expect_refused(const char *list, json_t *asked, const char *says)
{
    char *message = judged(list, asked);
    if (!strstr(message, says)) {
        fail_msg("'%s' does not say '%s'", message, says);
    }
    free(message);
}

static void a_good_job_is_allowed(void **state)
{
    (void)state;
    expect_allowed(NULL, review("CREATE", "PyTorchJob", JOB("1", "ok.example/a"), NULL));
}

static void a_bad_job_is_refused_with_all_that_is_wrong(void **state)
{
    (void)state;
    const char *job =
        "{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': "
        "'A_b'}, 'spec': {'pytorchReplicaSpecs': {'Master': {'replicas': 2, "
        "'template': " TEMPLATE("x") "}}}}";
    expect_refused(NULL, review("CREATE", "PyTorchJob", job, NULL), "metadata.name: ");
    expect_refused(NULL, review("CREATE", "PyTorchJob", job, NULL), "Master.replicas: must be 1");
}

static void what_is_not_changed_is_not_judged_again(void **state)
{
    (void)state;
    expect_allowed(NULL, review("UPDATE", "PyTorchJob", JOB("2", "x"), JOB("2", "x")));
    expect_refused(NULL, review("UPDATE", "PyTorchJob", JOB("2", "x"), JOB("1", "x")), "must be 1");
    expect_allowed(NULL, review("DELETE", "PyTorchJob", NULL, JOB("2", "x")));
}

static void what_may_not_change_is_refused(void **state)
{
    (void)state;
    json_t *before = parse(JOB("1", "x"));
    json_t *after = json_deep_copy(before);
    assert_int_equal(
        doc_set_text(before, "spec.runPolicy.managedBy", "kubeflow.org/training-operator"), 0);
    assert_int_equal(doc_set_text(after, "spec.runPolicy.managedBy", "kueue.x-k8s.io/multikueue"),
                     0);
    json_t *asked = review("UPDATE", "PyTorchJob", JOB("1", "x"), NULL);
    json_object_set_new(doc_at(asked, "request"), "object", after);
    json_object_set_new(doc_at(asked, "request"), "oldObject", before);
    expect_refused(NULL, asked, "managedBy");
}

static void images_of_jobs_are_compared_with_the_list(void **state)
{
    (void)state;
    expect_allowed("ok.example/*", review("CREATE", "PyTorchJob", JOB("1", "ok.example/a"), NULL));
    expect_refused("ok.example/*", review("CREATE", "PyTorchJob", JOB("1", "evil.example/a"), NULL),
                   "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].image: "
                   "'evil.example/a' is not among the images");
    expect_refused("ok.example/a", review("CREATE", "PyTorchJob", JOB("1", "ok.example/a"), NULL),
                   "initContainers[0].image: 'ok.example/fetch'");
}

static void images_of_pods_are_compared_at_each_change(void **state)
{
    (void)state;
    const char *list = "ok.example/*";
    expect_allowed(list, review("CREATE", "Pod", POD("ok.example/i", "ok.example/c"), NULL));
    expect_refused(list, review("CREATE", "Pod", POD("evil/i", "ok.example/c"), NULL),
                   "spec.initContainers[0].image: 'evil/i'");
    expect_refused(
        list,
        review("UPDATE", "Pod", POD("ok.example/i", "evil/c"), POD("ok.example/i", "ok.example/c")),
        "spec.containers[0].image: 'evil/c'");
    /* A pod from before the list: its other image may be changed to one of the list. */
    expect_allowed(list,
                   review("UPDATE", "Pod", POD("old/i", "ok.example/c"), POD("old/i", "old/c")));
    expect_refused(list,
                   review("UPDATE", "Pod",
                          "{'spec': {'ephemeralContainers': [{'name': 'd', 'image': 'evil/d'}]}}",
                          "{'spec': {}}"),
                   "spec.ephemeralContainers[0].image: 'evil/d'");
}

static void other_kinds_are_allowed(void **state)
{
    (void)state;
    expect_allowed("", review("CREATE", "TFJob", "{'spec': {}}", NULL));
    expect_allowed("", review("CONNECT", "Pod", POD("evil/i", "evil/c"), NULL));
}

static void reviews_that_are_none_are_answered(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "[]", "{'request': []}",
                                        "{'request': {'object': 7}}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_t *asked = parse(texts[i]);
        json_t *answer = webhook_answer_admission(asked, &(struct images){0});
        assert_true(doc_bool(answer, "response.allowed", false));
        json_decref(answer);
        json_decref(asked);
    }
}

static void what_is_refused_and_warned_is_bounded(void **state)
{
    (void)state;
    json_t *asked = review("CREATE", "Pod", "{'spec': {}}", NULL);
    json_t *containers = json_array();
    for (int i = 0; i < 2000; i++) {
        json_array_append_new(containers, json_pack("{s:s, s:s}", "name", "c", "image", "evil/c"));
    }
    json_object_set_new(doc_at(asked, "request.object.spec"), "containers", containers);
    expect_refused("", asked, "'evil/c'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_job_is_allowed),
        cmocka_unit_test(a_bad_job_is_refused_with_all_that_is_wrong),
        cmocka_unit_test(what_is_not_changed_is_not_judged_again),
        cmocka_unit_test(what_may_not_change_is_refused),
        cmocka_unit_test(images_of_jobs_are_compared_with_the_list),
        cmocka_unit_test(images_of_pods_are_compared_at_each_change),
        cmocka_unit_test(other_kinds_are_allowed),
        cmocka_unit_test(reviews_that_are_none_are_answered),
        cmocka_unit_test(what_is_refused_and_warned_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
