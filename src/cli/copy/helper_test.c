/* Checks the pod that serves a job's files: its node, its volumes, its image. */
#include "cli/copy/helper.h"

#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

static json_t *made_of(const char *pod_text, const char *image)
{
    json_t *pod = parse(pod_text), *made = NULL;
    json_t *owner = parse("{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': "
                          "{'name': 'j', 'uid': 'u'}}");
    const struct helper helper = {pod, "pytorch", owner, image, "j-copy-1", "token", "model.pt"};
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(helper_make(&helper, &made, &err), 0);
    json_decref(pod);
    json_decref(owner);
    return made;
}

static const char over[] =
    "{'metadata': {'name': 'j-master-0'}, 'status': {'phase': 'Succeeded'}, 'spec': {"
    " 'nodeName': 'n', 'imagePullSecrets': [{'name': 's'}], 'tolerations': [{'operator': 'Exists'}],"
    " 'securityContext': {'runAsUser': 7}, 'hostNetwork': true, 'initContainers': [{'name': 'i'}],"
    " 'volumes': [{'name': 'data', 'persistentVolumeClaim': {'claimName': 'c'}},"
    "             {'name': 'scratch', 'emptyDir': {}}, {'name': 'plain'},"
    "             {'name': 'other', 'persistentVolumeClaim': {'claimName': 'd'}},"
    "             {'name': 'token', 'secret': {'secretName': 't'}}],"
    " 'containers': [{'name': 'pytorch', 'image': 'i:1', 'workingDir': '/w', 'args': ['train'],"
    "   'resources': {'limits': {'nvidia.com/gpu': 1}}, 'env': [{'name': 'A', 'value': 'b'}],"
    "   'volumeMounts': [{'name': 'data', 'mountPath': '/data', 'subPath': 'a'},"
    "     {'name': 'scratch', 'mountPath': '/s'}, {'name': 'plain', 'mountPath': '/p'},"
    "     {'name': 'token', 'mountPath': '/t'}]}]}}";

static void it_mounts_what_outlives_the_pod_read_only(void **state)
{
    (void)state;
    json_t *made = made_of(over, NULL);
    json_t *container = doc_at(made, "spec.containers.0");
    json_t *mounts =
        parse("[{'name': 'data', 'mountPath': '/data', 'subPath': 'a', 'readOnly': true}]");
    assert_true(json_equal(doc_at(container, "volumeMounts"), mounts));
    assert_int_equal(json_array_size(doc_at(made, "spec.volumes")), 1);
    assert_string_equal(doc_text(container, "image", ""), "i:1");
    assert_string_equal(doc_text(container, "workingDir", ""), "/w");
    assert_int_equal(doc_int(made, "spec.securityContext.runAsUser", 0), 7);
    assert_non_null(doc_at(made, "spec.imagePullSecrets.0"));
    assert_null(doc_at(container, "env"));
    assert_null(doc_at(made, "spec.hostNetwork"));
    assert_null(doc_at(made, "spec.initContainers"));
    assert_null(doc_at(container, "resources.limits.nvidia.com/gpu"));
    const json_t *command = doc_at(container, "command");
    assert_int_equal(json_array_size(command), 6);
    assert_string_equal(json_string_value(json_array_get(command, 5)), "/data");
    json_decref(mounts);
    json_decref(made);
}

static void it_goes_with_the_job_and_is_no_replica(void **state)
{
    (void)state;
    json_t *made = made_of(over, NULL);
    assert_string_equal(doc_text(made, "metadata.ownerReferences.0.uid", ""), "u");
    assert_null(doc_at(made, "metadata.ownerReferences.0.controller"));
    assert_true(doc_int(made, "spec.activeDeadlineSeconds", 0) > 0);
    json_decref(made);
}

/* A volume of one node can be mounted on any node when its pod has ended; a folder of a node stays
 * on that node. */
static void it_runs_where_the_files_are(void **state)
{
    (void)state;
    static const char preferred[] = "preferredDuringSchedulingIgnoredDuringExecution";
    static const char required[] = "requiredDuringSchedulingIgnoredDuringExecution";
    json_t *pod = parse(over), *made = made_of(over, "other:2");
    assert_non_null(json_object_get(doc_at(made, "spec.affinity.nodeAffinity"), preferred));
    assert_string_equal(doc_text(made, "spec.containers.0.image", ""), "other:2");
    json_decref(made);
    json_t *running = json_deep_copy(pod);
    doc_set_text(running, "status.phase", "Running");
    json_object_del(pod, "none");
    char *text = doc_print(running);
    made = made_of(text, NULL);
    assert_non_null(json_object_get(doc_at(made, "spec.affinity.nodeAffinity"), required));
    free(text);
    json_decref(made);
    json_decref(running);
    json_decref(pod);
}

static void without_such_a_volume_it_says_so(void **state)
{
    (void)state;
    json_t *pod = parse("{'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'c'}]}}");
    struct helper helper = {pod, "c", NULL, NULL, "n", "t", "p"};
    json_t *made = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(helper_make(&helper, &made, &err), MUSTER_ENOENT);
    assert_non_null(strstr(err.text, "mounts no volume that outlives it"));
    helper.container = "other";
    assert_int_equal(helper_make(&helper, &made, &err), MUSTER_ENOENT);
    assert_non_null(strstr(err.text, "no container other"));
    json_decref(pod);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_mounts_what_outlives_the_pod_read_only),
        cmocka_unit_test(it_goes_with_the_job_and_is_no_replica),
        cmocka_unit_test(it_runs_where_the_files_are),
        cmocka_unit_test(without_such_a_volume_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
