/* The options of a command line override a job that has limits, mounts and folders of its own. */
#include "job/override.h"

#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

static const char *const job_text =
    "{'spec': {'pytorchReplicaSpecs': {"
    "'Master': {'template': {'spec': {'containers': ["
    "{'name': 'side'},"
    "{'name': 'pytorch', 'workingDir': '/old', 'resources': {'limits': {'cpu': '1', "
    "'nvidia.com/gpu': 1}, 'requests': {'cpu': '1', 'memory': '1Gi'}}}]}}},"
    "'Worker': {'template': {'spec': {'volumes': [{'name': 'claim', 'emptyDir': {}}], "
    "'containers': [{'name': 'pytorch', 'volumeMounts': [{'name': 'claim', 'mountPath': "
    "'/data'}]}]}}}}}}";

#define MASTER "spec.pytorchReplicaSpecs.Master.template.spec."
#define WORKER "spec.pytorchReplicaSpecs.Worker.template.spec."

static json_t *make_job(void)
{
    return parse(job_text);
}

static const json_t *resource(const json_t *job, const char *path, const char *name)
{
    return json_object_get(doc_at(job, path), name);
}

static void limits_replace_limits_and_requests(void **state)
{
    (void)state;
    json_t *job = make_job();
    const struct job_override o = {.cpu = "500m", .gpus = "2", .working_dir = "/new"};
    assert_int_equal(job_override(job, &o, NULL), 0);
    const char *limits = MASTER "containers.1.resources.limits";
    assert_string_equal(json_string_value(resource(job, limits, "cpu")), "500m");
    assert_int_equal(json_integer_value(resource(job, limits, "nvidia.com/gpu")), 2);
    const char *requests = MASTER "containers.1.resources.requests";
    assert_null(resource(job, requests, "cpu"));
    assert_non_null(resource(job, requests, "memory"));
    assert_string_equal(doc_text(job, MASTER "containers.1.workingDir", ""), "/new");
    assert_string_equal(doc_text(job, WORKER "containers.0.workingDir", ""), "/new");
    assert_null(doc_at(job, MASTER "containers.0.resources")); /* this container is not a rank */
    json_decref(job);
}

static void no_gpus_removes_the_request(void **state)
{
    (void)state;
    json_t *job = make_job();
    assert_int_equal(job_override(job, &(struct job_override){.gpus = "0"}, NULL), 0);
    assert_null(resource(job, MASTER "containers.1.resources.limits", "nvidia.com/gpu"));
    assert_non_null(resource(job, MASTER "containers.1.resources.limits", "cpu"));
    assert_null(doc_at(job, WORKER "containers.0.resources"));
    json_decref(job);
}

static void a_claim_takes_a_free_volume_name(void **state)
{
    (void)state;
    json_t *job = make_job();
    const struct job_claim claims[] = {{"kept", "/kept"}, {"more", "/more"}};
    const struct job_override o = {.claims = claims, .claim_count = 2};
    assert_int_equal(job_override(job, &o, NULL), 0);
    assert_string_equal(doc_text(job, MASTER "volumes.0.name", ""), "claim");
    assert_string_equal(doc_text(job, MASTER "volumes.1.name", ""), "claim-2");
    assert_string_equal(doc_text(job, WORKER "volumes.1.name", ""), "claim-2");
    assert_string_equal(doc_text(job, WORKER "volumes.2.persistentVolumeClaim.claimName", ""),
                        "more");
    assert_string_equal(doc_text(job, WORKER "containers.0.volumeMounts.2.name", ""), "claim-3");
    assert_string_equal(doc_text(job, WORKER "containers.0.volumeMounts.2.mountPath", ""), "/more");
    json_decref(job);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct job_claim taken = {"kept", "/data"};
    static const struct job_claim wrong = {"My_Claim", "/x"};
    static const struct {
        struct job_override o;
        const char *says;
    } cases[] = {
        {{.cpu = "many"}, "--cpu \"many\" must be a quantity such as 2 or 500m"},
        {{.cpu = "0"}, "--cpu \"0\" must be"},
        {{.memory = "-1Gi"}, "--memory \"-1Gi\" must be a quantity such as 4Gi"},
        {{.gpus = "-1"}, "--gpus \"-1\" must be a number"},
        {{.gpus = ""}, "--gpus \"\" must be a number"},
        {{.gpus = "two"}, "--gpus \"two\" must be a number"},
        {{.working_dir = ""}, "--workdir \"\" must be a folder"},
        {{.claims = &wrong, .claim_count = 1}, "--claim \"My_Claim\": the claim's name must"},
        {{.claims = &taken, .claim_count = 1},
         "Worker: --claim kept:/data: volume claim is mounted there already"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *job = make_job();
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(job_override(job, &cases[i].o, &err), MUSTER_EINVAL);
        if (!strstr(err.text, cases[i].says)) {
            fail_msg("%s", err.text);
        }
        json_decref(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_replace_limits_and_requests),
        cmocka_unit_test(no_gpus_removes_the_request),
        cmocka_unit_test(a_claim_takes_a_free_volume_name),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
