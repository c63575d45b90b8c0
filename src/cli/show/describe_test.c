/* Compares the output of `describe` with golden texts, which have the seed's sections in the seed's
 * order. */
#include "cli/show/describe.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/time/timestamp.h"
#include "base/yaml/yaml.h"

static const char azure_job[] =
    "apiVersion: kubeflow.org/v1\n"
    "kind: PyTorchJob\n"
    "metadata:\n"
    "  name: mnist\n"
    "  namespace: default\n"
    "  creationTimestamp: '2020-05-13T00:02:06Z'\n"
    "  generation: 1\n"
    "  resourceVersion: '4417243'\n"
    "  uid: a7617036\n"
    "spec:\n"
    "  pytorchReplicaSpecs:\n"
    "    Master:\n"
    "      replicas: 1\n"
    "      restartPolicy: OnFailure\n"
    "      template:\n"
    "        spec:\n"
    "          containers:\n"
    "          - name: pytorch\n"
    "            image: mnist-test:1.0\n"
    "            args: [--backend, gloo]\n"
    "            resources: {limits: null}\n"
    "status:\n"
    "  completionTime: '2020-05-13T00:06:32Z'\n"
    "  startTime: '2020-05-13T00:02:06Z'\n"
    "  conditions:\n"
    "  - {type: Created, status: 'True', reason: PyTorchJobCreated}\n"
    "  - {type: Succeeded, status: 'True', reason: PyTorchJobSucceeded}\n"
    "  replicaStatuses: {Master: {succeeded: 1}}\n";

static const char azure_events[] =
    "- {type: Normal, reason: SuccessfulCreatePod, lastTimestamp: '2020-05-13T00:02:06Z',\n"
    "   source: {component: pytorchjob-controller}, message: 'Created pod: mnist-master-0'}\n"
    "- {type: Normal, reason: PyTorchJobSucceeded, lastTimestamp: '2020-05-13T00:06:32Z',\n"
    "   firstTimestamp: '2020-05-13T00:05:32Z', count: 2,\n"
    "   source: {component: pytorchjob-controller}, message: done}\n";

static const char azure_text[] =
    "Name:         mnist\n"
    "Namespace:    default\n"
    "Labels:       <none>\n"
    "Annotations:  <none>\n"
    "API Version:  kubeflow.org/v1\n"
    "Kind:         PyTorchJob\n"
    "Metadata:\n"
    "  Creation Timestamp:  2020-05-13T00:02:06Z\n"
    "  Generation:          1\n"
    "  Resource Version:    4417243\n"
    "  Self Link:           /apis/kubeflow.org/v1/namespaces/default/pytorchjobs/mnist\n"
    "  UID:                 a7617036\n"
    "Spec:\n"
    "  Pytorch Replica Specs:\n"
    "    Master:\n"
    "      Replicas:        1\n"
    "      Restart Policy:  OnFailure\n"
    "      Template:\n"
    "        Spec:\n"
    "          Containers:\n"
    "            Args:\n"
    "              --backend\n"
    "              gloo\n"
    "            Image:  mnist-test:1.0\n"
    "            Name:   pytorch\n"
    "            Resources:\n"
    "              Limits:  <nil>\n"
    "Status:\n"
    "  Completion Time:  2020-05-13T00:06:32Z\n"
    "  Conditions:\n"
    "    Reason:  PyTorchJobCreated\n"
    "    Status:  True\n"
    "    Type:    Created\n"
    "    Reason:  PyTorchJobSucceeded\n"
    "    Status:  True\n"
    "    Type:    Succeeded\n"
    "  Replica Statuses:\n"
    "    Master:\n"
    "      Succeeded:  1\n"
    "  Start Time:     2020-05-13T00:02:06Z\n"
    "Events:\n"
    "  Type    Reason               Age                From                   Message\n"
    "  ----    ------               ----               ----                   -------\n"
    "  Normal  SuccessfulCreatePod  17m                pytorchjob-controller  Created pod: "
    "mnist-master-0\n"
    "  Normal  PyTorchJobSucceeded  13m (x2 over 14m)  pytorchjob-controller  done\n";

static void job_reads_as_in_the_seed(void **state)
{
    (void)state;
    struct buf out;
    json_t *job = parse_yaml(azure_job);
    json_t *events = parse_yaml(azure_events);
    buf_init(&out, 1 << 20);
    describe_object(job, events, timestamp_read("2020-05-13T00:19:40Z"), &out);
    assert_string_equal(buf_str(&out), azure_text);
    buf_done(&out);
    json_decref(job);
    json_decref(events);
}

static void labels_follow_the_keys(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"pytorchReplicaSpecs", "Pytorch Replica Specs"},
        {"uid", "UID"},
        {"ttlSecondsAfterFinished", "TTL Seconds After Finished"},
        {"podIP", "Pod IP"},
        {"Master", "Master"},
        {"nprocPerNode", "Nproc Per Node"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char label[64];
        describe_label(cases[i][0], label, sizeof label);
        assert_string_equal(label, cases[i][1]);
    }
}

static const char pod[] = "apiVersion: v1\n"
                          "kind: Pod\n"
                          "metadata:\n"
                          "  name: mnist-worker-0\n"
                          "  namespace: default\n"
                          "  labels: {b: '2', a: '1'}\n"
                          "  ownerReferences: [{kind: PyTorchJob, name: mnist}]\n"
                          "spec:\n"
                          "  nodeName: laptop\n"
                          "  volumes: [{name: data, persistentVolumeClaim: {claimName: results}}]\n"
                          "  containers:\n"
                          "  - name: pytorch\n"
                          "    image: mnist-test:1.0\n"
                          "    command: [python3, mnist.py]\n"
                          "    env:\n"
                          "    - {name: RANK, value: '1'}\n"
                          "    - {name: TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}\n"
                          "    resources: {limits: {memory: 1Gi}}\n"
                          "    volumeMounts: [{name: data, mountPath: /results}]\n"
                          "status:\n"
                          "  phase: Running\n"
                          "  podIP: 127.0.0.1\n"
                          "  startTime: '2020-05-13T00:02:06Z'\n"
                          "  conditions: [{type: Ready, status: 'True'}]\n"
                          "  containerStatuses:\n"
                          "  - name: pytorch\n"
                          "    ready: true\n"
                          "    restartCount: 1\n"
                          "    state: {running: {startedAt: '2020-05-13T00:02:09Z'}}\n"
                          "    lastState: {terminated: {exitCode: 137, reason: OOMKilled}}\n";

static const char pod_text[] = "Name:           mnist-worker-0\n"
                               "Namespace:      default\n"
                               "Node:           laptop\n"
                               "Start Time:     Wed, 13 May 2020 00:02:06 +0000\n"
                               "Labels:         a=1\n"
                               "                b=2\n"
                               "Annotations:    <none>\n"
                               "Status:         Running\n"
                               "IP:             127.0.0.1\n"
                               "Controlled By:  PyTorchJob/mnist\n"
                               "Containers:\n"
                               "  pytorch:\n"
                               "    Image:  mnist-test:1.0\n"
                               "    Command:\n"
                               "      python3\n"
                               "      mnist.py\n"
                               "    State:          Running\n"
                               "      Started:      Wed, 13 May 2020 00:02:09 +0000\n"
                               "    Last State:     Terminated\n"
                               "      Reason:       OOMKilled\n"
                               "      Exit Code:    137\n"
                               "    Ready:          True\n"
                               "    Restart Count:  1\n"
                               "    Limits:\n"
                               "      memory:  1Gi\n"
                               "    Environment:\n"
                               "      RANK:   1\n"
                               "      TOKEN:  <set to the key 'k' in secret 's'>\n"
                               "    Mounts:\n"
                               "      /results from data (rw)\n"
                               "Conditions:\n"
                               "  Type:   Status\n"
                               "  Ready:  True\n"
                               "Volumes:\n"
                               "  data:\n"
                               "    Type:   persistentVolumeClaim\n"
                               "    Claim:  results\n"
                               "Events:     <none>\n";

static void pod_tells_its_containers_and_no_secret(void **state)
{
    (void)state;
    struct buf out;
    json_t *object = parse_yaml(pod);
    buf_init(&out, 1 << 20);
    describe_pod(object, NULL, 0, &out);
    assert_string_equal(buf_str(&out), pod_text);
    buf_done(&out);
    json_decref(object);
}

/* An object whose values all have wrong types is printed without harm. */
static void strange_objects_do_no_harm(void **state)
{
    (void)state;
    static const char *const strange[] = {
        "{}", "{metadata: 3, spec: [], status: {}}", "{kind: Pod, spec: {containers: [1, {}, []]}}",
        "{kind: Pod, metadata: {labels: [a]}, status: {containerStatuses: {a: 1}}}"};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        struct buf out;
        json_t *object = parse_yaml(strange[i]);
        buf_init(&out, 1 << 20);
        describe_object(object, object, 0, &out);
        describe_pod(object, NULL, 0, &out);
        assert_false(buf_failed(&out));
        buf_done(&out);
        json_decref(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_reads_as_in_the_seed),
        cmocka_unit_test(labels_follow_the_keys),
        cmocka_unit_test(pod_tells_its_containers_and_no_secret),
        cmocka_unit_test(strange_objects_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
