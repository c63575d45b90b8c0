/* Jobs in three versions: which fields move, which ones are carried along, and that nothing is lost
 * on the way. */
#include "webhook/conversion.h"

#include "base/testing/test_doc.h"

static json_t *convert(json_t *job, const char *version)
{
    json_t *result = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (webhook_convert(job, version, &result, &err) != 0) {
        fail_msg("%s", err.text);
    }
    json_decref(job);
    return result;
}

static void expect(json_t *actual, const char *text)
{
    json_t *expected = parse(text);
    if (!json_equal(actual, expected)) {
        char *printed = doc_print(actual);
        fail_msg("it is %s\ninstead of %s", printed, text);
    }
    json_decref(expected);
    json_decref(actual);
}

static void old_fields_become_the_run_policy(void **state)
{
    (void)state;
    json_t *job = parse("{'apiVersion': 'kubeflow.org/v1beta2', 'kind': 'PyTorchJob', 'metadata': "
                        "{'name': 'a'}, 'spec': {'cleanPodPolicy': 'All', 'backoffLimit': 3, "
                        "'pytorchReplicaSpecs': {'Master': {}}}, 'status': {'startTime': 't'}}");
    expect(convert(job, "kubeflow.org/v1"),
           "{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': 'a'}, "
           "'spec': {'runPolicy': {'cleanPodPolicy': 'All', 'backoffLimit': 3}, "
           "'pytorchReplicaSpecs': {'Master': {}}}, 'status': {'startTime': 't'}}");
}

static void a_job_without_old_fields_gets_no_run_policy(void **state)
{
    (void)state;
    json_t *job =
        parse("{'apiVersion': 'kubeflow.org/v1beta1', 'spec': {'pytorchReplicaSpecs': {}}}");
    expect(convert(job, "kubeflow.org/v1"),
           "{'apiVersion': 'kubeflow.org/v1', 'spec': {'pytorchReplicaSpecs': {}}}");
}

static void what_an_old_version_cannot_say_is_carried_along(void **state)
{
    (void)state;
    json_t *job =
        parse("{'apiVersion': 'kubeflow.org/v1', 'metadata': {'name': 'a'}, 'spec': "
              "{'nprocPerNode': '2', 'runPolicy': {'suspend': true, 'backoffLimit': 3}}}");
    expect(convert(job, "kubeflow.org/v1beta2"),
           "{'apiVersion': 'kubeflow.org/v1beta2', 'metadata': {'name': 'a', 'annotations': "
           "{'muster.dev/v1-fields': "
           "'{\\'nprocPerNode\\':\\'2\\',\\'runPolicy\\':{\\'suspend\\':true}}'}}, "
           "'spec': {'backoffLimit': 3}}");
}

/* The client of an old version changes the fields that it sees; the others stay. */
static void a_change_in_an_old_version_keeps_the_rest(void **state)
{
    (void)state;
    json_t *job = parse("{'apiVersion': 'kubeflow.org/v1', 'metadata': {'name': 'a'}, 'spec': "
                        "{'elasticPolicy': {'minReplicas': 1}, 'runPolicy': {'suspend': true, "
                        "'backoffLimit': 3, 'activeDeadlineSeconds': 9}}}");
    job = convert(job, "kubeflow.org/v1beta1");
    assert_null(doc_at(job, "spec.backoffLimit")); /* v1beta1 did not have it */
    assert_int_equal(doc_set_text(job, "spec.cleanPodPolicy", "All"), 0);
    expect(convert(job, "kubeflow.org/v1"),
           "{'apiVersion': 'kubeflow.org/v1', 'metadata': {'name': 'a'}, 'spec': "
           "{'elasticPolicy': {'minReplicas': 1}, 'runPolicy': {'suspend': true, "
           "'backoffLimit': 3, 'activeDeadlineSeconds': 9, 'cleanPodPolicy': 'All'}}}");
}

static void a_field_that_was_removed_in_an_old_version_stays_removed(void **state)
{
    (void)state;
    json_t *job = parse("{'apiVersion': 'kubeflow.org/v1', 'metadata': {}, 'spec': {'runPolicy': "
                        "{'cleanPodPolicy': 'All', 'suspend': true}}}");
    job = convert(job, "kubeflow.org/v1beta2");
    json_object_del(doc_at(job, "spec"), "cleanPodPolicy");
    job = convert(job, "kubeflow.org/v1");
    assert_null(doc_at(job, "spec.runPolicy.cleanPodPolicy"));
    assert_true(doc_bool(job, "spec.runPolicy.suspend", false));
    json_decref(job);
}

/* Each job is converted to each version, and back. */
static void every_round_trip_gives_the_same_job(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        "{'apiVersion': 'kubeflow.org/v1', 'metadata': {'name': 'a', 'annotations': {'b': 'c'}}, "
        "'spec': {'runPolicy': {'suspend': false, 'ttlSecondsAfterFinished': 0, "
        "'schedulingPolicy': {'queue': 'q', 'minResources': {'cpu': '1'}}, 'managedBy': 'x'}, "
        "'pytorchReplicaSpecs': {'Worker': {'replicas': 3, 'volumeClaimTemplates': []}}, "
        "'nprocPerNode': 'auto', 'elasticPolicy': {'rdzvConf': [{'key': 'k', 'value': 'v'}]}}}",
        "{'apiVersion': 'kubeflow.org/v1', 'metadata': {'name': 'a'}, 'spec': {}}",
        "{'apiVersion': 'kubeflow.org/v1', 'metadata': {'name': 'a'}}",
        "{'apiVersion': 'kubeflow.org/v1', 'metadata': {'name': 'a'}, 'spec': {'runPolicy': 7}}",
        "{'apiVersion': 'kubeflow.org/v1', 'metadata': {'name': 'a'}, 'spec': {'runPolicy': null, "
        "'pytorchReplicaSpecs': []}}",
    };
    static const char *const by[] = {"kubeflow.org/v1", "kubeflow.org/v1beta1",
                                     "kubeflow.org/v1beta2"};
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        for (size_t a = 0; a < 9; a++) {
            json_t *job = convert(convert(parse(jobs[i]), by[a / 3]), by[a % 3]);
            expect(convert(job, "kubeflow.org/v1"), jobs[i]);
        }
    }
}

/* Another program's text in the annotation does no harm and is kept. */
static void an_annotation_that_is_no_object_is_left_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {"nonsense", "[1]", "7", ""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_t *job = parse("{'apiVersion': 'kubeflow.org/v1beta2', 'metadata': {'annotations': "
                            "{}}, 'spec': {}}");
        json_t *notes = doc_at(job, "metadata.annotations");
        json_object_set_new(notes, WEBHOOK_ANNOTATION_V1_FIELDS, json_string(texts[i]));
        job = convert(job, "kubeflow.org/v1");
        notes = doc_at(job, "metadata.annotations");
        assert_string_equal(json_string_value(json_object_get(notes, WEBHOOK_ANNOTATION_V1_FIELDS)),
                            texts[i]);
        json_decref(job);
    }
}

static void a_review_is_answered_with_all_of_its_objects(void **state)
{
    (void)state;
    json_t *review =
        parse("{'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'ConversionReview', 'request': "
              "{'uid': 'u', 'desiredAPIVersion': 'kubeflow.org/v1', 'objects': ["
              "{'apiVersion': 'kubeflow.org/v1beta1', 'spec': {}},"
              "{'apiVersion': 'kubeflow.org/v1', 'spec': {}}]}}");
    expect(webhook_answer_conversion(review),
           "{'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'ConversionReview', 'response': "
           "{'uid': 'u', 'result': {'status': 'Success'}, 'convertedObjects': ["
           "{'apiVersion': 'kubeflow.org/v1', 'spec': {}},"
           "{'apiVersion': 'kubeflow.org/v1', 'spec': {}}]}}");
    json_decref(review);
}

static void a_review_that_cannot_be_answered_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *objects;
        const char *says;
    } cases[] = {
        {"[{'apiVersion': 'kubeflow.org/v1alpha2'}]", "'kubeflow.org/v1alpha2' is no version"},
        {"[{}]", "'' is no version"},
        {"[7]", "no JSON object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *review = parse("{'request': {'uid': 'u', 'desiredAPIVersion': 'kubeflow.org/v1'}}");
        json_object_set_new(doc_at(review, "request"), "objects", parse(cases[i].objects));
        json_t *answer = webhook_answer_conversion(review);
        assert_string_equal(doc_text(answer, "response.result.status", ""), "Failed");
        assert_non_null(strstr(doc_text(answer, "response.result.message", ""), cases[i].says));
        json_decref(answer);
        json_decref(review);
    }
}

static void a_review_that_is_none_is_answered(void **state)
{
    (void)state;
    static const char *const reviews[] = {"{}", "[]", "{'request': 7}",
                                          "{'request': {'objects': 7}}"};
    for (size_t i = 0; i < sizeof reviews / sizeof reviews[0]; i++) {
        json_t *review = parse(reviews[i]);
        json_t *answer = webhook_answer_conversion(review);
        assert_string_equal(doc_text(answer, "kind", ""), "ConversionReview");
        json_decref(answer);
        json_decref(review);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_fields_become_the_run_policy),
        cmocka_unit_test(a_job_without_old_fields_gets_no_run_policy),
        cmocka_unit_test(what_an_old_version_cannot_say_is_carried_along),
        cmocka_unit_test(a_change_in_an_old_version_keeps_the_rest),
        cmocka_unit_test(a_field_that_was_removed_in_an_old_version_stays_removed),
        cmocka_unit_test(every_round_trip_gives_the_same_job),
        cmocka_unit_test(an_annotation_that_is_no_object_is_left_alone),
        cmocka_unit_test(a_review_is_answered_with_all_of_its_objects),
        cmocka_unit_test(a_review_that_cannot_be_answered_says_why),
        cmocka_unit_test(a_review_that_is_none_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
