/* Checks what is left of a pod. Every step of the other tests of src/control and of test/simulation
 * checks that the core makes the same decisions with this part. */
#include "base/testing/test_doc.h"
#include "control/projection/projection.h"

static void expect(json_t *(*project)(const json_t *object), const char *whole, const char *left)
{
    json_t *object = parse(whole);
    json_t *wanted = parse(left);
    json_t *own = project(object);
    char *text = doc_print(own);
    if (!json_equal(own, wanted)) {
        fail_msg("%s", text);
    }
    free(text);
    json_decref(own);
    json_decref(wanted);
    json_decref(object);
}

static void a_pod_keeps_what_the_core_reads(void **state)
{
    (void)state;
    expect(
        control_project_pod,
        "{'metadata': {'name': 'j-worker-0', 'namespace': 'n', 'uid': 'u', 'resourceVersion': '7',"
        " 'managedFields': [{}], 'labels': {'a': 'b'}, 'annotations': {'x': 'y',"
        " 'muster.dev/attempt': '2'}, 'ownerReferences': [{'uid': 'other'},"
        " {'apiVersion': 'v1', 'kind': 'PyTorchJob', 'name': 'j', 'uid': 'o', 'controller': true}]},"
        " 'spec': {'nodeName': 'n', 'containers': [{'name': 'side', 'image': 'i'}, {'name': 'pytorch',"
        " 'resources': {'limits': {'nvidia.com/gpu': 1}}}]},"
        " 'status': {'phase': 'Running', 'hostIP': '10.0.0.1', 'conditions': [{'type': 'Ready'},"
        " {'type': 'DisruptionTarget', 'status': 'True', 'reason': 'r'}], 'containerStatuses': [{'name':"
        " 'pytorch', 'imageID': 'x', 'restartCount': 3, 'state': {'waiting': {'reason':"
        " 'CrashLoopBackOff', 'message': 'm'}}, 'lastState': {'terminated': {'exitCode': 1,"
        " 'containerID': 'c', 'finishedAt': 't'}}}]}}",
        "{'metadata': {'name': 'j-worker-0', 'namespace': 'n', 'uid': 'u', 'resourceVersion': '7',"
        " 'annotations': {'muster.dev/attempt': '2'},"
        " 'ownerReferences': [{'kind': 'PyTorchJob', 'name': 'j', 'uid': 'o', 'controller': true}]},"
        " 'spec': {'nodeName': 'n', 'containers': [{'resources': {'limits': {'nvidia.com/gpu':"
        " 1}}}]},"
        " 'status': {'phase': 'Running', 'conditions': [{'type': 'DisruptionTarget', 'status': 'True'}],"
        " 'containerStatuses': [{'name': 'pytorch', 'restartCount': 3,"
        " 'state': {'waiting': {'reason': 'CrashLoopBackOff'}}, 'lastState': {'terminated':"
        " {'exitCode': 1, 'finishedAt': 't'}}}]}}");
}

static void of_others_the_metadata_is_left(void **state)
{
    (void)state;
    expect(
        control_project_object,
        "{'metadata': {'name': 's', 'uid': 'u', 'deletionTimestamp': 't'}, 'spec': {'ports': []}}",
        "{'metadata': {'name': 's', 'uid': 'u', 'deletionTimestamp': 't'}}");
    expect(control_project_object, "{}", "{'metadata': {}}");
    expect(control_project_pod, "{'metadata': 3, 'status': [], 'spec': {'containers': 'no'}}",
           "{'metadata': {}, 'status': {}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_keeps_what_the_core_reads),
        cmocka_unit_test(of_others_the_metadata_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
