/* Checks what the request of an effect contains. */
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "controller/internal.h"

static json_t *make_job(void)
{
    return parse(
        "{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': 'a', "
        "'namespace': 'default', 'uid': 'job-1', 'resourceVersion': '7', 'managedFields': "
        "[{'manager': 'kubectl'}]}, 'spec': {'pytorchReplicaSpecs': {}}, 'status': {'old': "
        "1}}");
}

/* The request has the precondition and all fields that a webhook may look at, but not the fields
 * that only the API server sets. The job of the flow stays complete, because its managedFields show
 * which other programs write its status. */
static void a_status_goes_with_the_job_but_not_its_managers(void **state)
{
    (void)state;
    json_t *job = make_job(), *before = json_deep_copy(job);
    struct task *task = calloc(1, sizeof *task);
    task->flow.job = job;
    const struct control_effect effect = {.verb = CONTROL_UPDATE_STATUS,
                                          .object = parse("{'new': 1}")};
    struct cluster_request request = driver_request(task, &effect);
    assert_int_equal(request.verb, CLUSTER_REPLACE);
    assert_string_equal(request.subresource, "status");
    assert_string_equal(request.name, "a");
    json_t *wanted =
        parse("{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': "
              "{'name': 'a', 'namespace': 'default', 'uid': 'job-1', "
              "'resourceVersion': '7'}, 'spec': {'pytorchReplicaSpecs': {}}, 'status': "
              "{'new': 1}}");
    assert_true(json_equal(request.body, wanted));
    assert_true(json_equal(job, before));
    json_decref(wanted);
    json_decref(request.body);
    json_decref(effect.object);
    json_decref(before);
    json_decref(job);
    free(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_goes_with_the_job_but_not_its_managers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
