/* Checks the rules of the exit code as a table: a job and its pods at the end, and the exit status
 * of `run`. */
#include "control/verdict.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/yaml/yaml.h"

#include <stdlib.h>

static json_t *job_of(const char *conditions)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{apiVersion: kubeflow.org/v1, kind: PyTorchJob,\n"
             " metadata: {name: j, namespace: default, uid: u},\n"
             " spec: {pytorchReplicaSpecs: {\n"
             "  Master: {template: {spec: {containers: [{name: pytorch, image: i}]}}},\n"
             "  Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: "
             "i}]}}}}},\n"
             " status: {conditions: [%s]}}",
             conditions);
    return parse_yaml(text);
}

/* Returns a pod that ended with this exit code, at this second, for this reason. */
static json_t *pod_of(int index, int exit_code, int second, const char *reason)
{
    char text[2048];
    const char *role = index == 0 ? "master" : "worker";
    int number = index == 0 ? 0 : index - 1;
    snprintf(text, sizeof text,
             "{metadata: {name: j-%s-%d, namespace: default, uid: p%d,\n"
             "  labels: {training.kubeflow.org/job-name: j,\n"
             "   training.kubeflow.org/operator-name: pytorchjob-controller,\n"
             "   training.kubeflow.org/replica-type: %s,\n"
             "   training.kubeflow.org/replica-index: '%d'},\n"
             "  ownerReferences: [{kind: PyTorchJob, name: j, uid: u, controller: true}]},\n"
             " spec: {containers: [{name: pytorch}]},\n"
             " status: {phase: Failed, containerStatuses: [{name: pytorch, restartCount: 0,\n"
             "  state: {terminated: {exitCode: %d, reason: %s,\n"
             "   finishedAt: '2026-01-02T03:04:%02dZ'}}}]}}",
             role, number, index, role, number, exit_code, reason, second);
    return parse_yaml(text);
}

#define FAILED(reason, message)                                                                    \
    "{type: Running, status: 'False'}, {type: Failed, status: 'True', reason: " reason             \
    ", message: '" message "'}"

static const struct {
    const char *conditions;
    int code[3]; /* 0: no such pod */
    int second[3];
    const char *reason;
    bool deleted;
    enum verdict_end end;
    int exit_code;
    const char *why;
} cases[] = {
    {"{type: Created, status: 'True'}", {0}, {0}, "x", false, VERDICT_RUNNING, 1, ""},
    {"{type: Running, status: 'False'}, {type: Succeeded, status: 'True'}",
     {0},
     {0},
     "x",
     false,
     VERDICT_SUCCEEDED,
     0,
     ""},
    /* Succeeded counts even if a Worker failed, because the Master decides. */
    {"{type: Succeeded, status: 'True'}", {0, 3}, {0, 5}, "Error", false, VERDICT_SUCCEEDED, 0, ""},
    {FAILED("PyTorchJobFailed", "m"),
     {0, 3},
     {0, 5},
     "Error",
     false,
     VERDICT_FAILED,
     3,
     "j-worker-0 (rank 1) exited with code 3"},
    /* The first failure counts, not that of the lowest rank; the other ranks died because of it. */
    {FAILED("PyTorchJobFailed", "m"),
     {1, 139, 143},
     {9, 5, 7},
     "Error",
     false,
     VERDICT_FAILED,
     139,
     "j-worker-0 (rank 1) was killed by signal 11 (SIGSEGV)"},
    {FAILED("PyTorchJobFailed", "m"),
     {137},
     {5},
     "OOMKilled",
     false,
     VERDICT_FAILED,
     137,
     "j-master-0 (rank 0) ran out of memory and was killed (exit code 137)"},
    {FAILED("PyTorchJobFailed",
            "Job j has failed because it was active longer than specified deadline"),
     {143},
     {5},
     "Error",
     false,
     VERDICT_FAILED,
     124,
     "Job j has failed because it was active longer than specified deadline"},
    {FAILED("PyTorchJobStopped", "lease closed"),
     {143},
     {5},
     "Error",
     false,
     VERDICT_FAILED,
     143,
     "lease closed"},
    /* No pod is left that could give a reason. */
    {FAILED("PyTorchJobFailed", "gone"), {0}, {0}, "x", false, VERDICT_FAILED, 1, "gone"},
    {"{type: Running, status: 'True'}",
     {0},
     {0},
     "x",
     true,
     VERDICT_DELETED,
     1,
     "the job was deleted while it ran"},
    /* The job was deleted after its end: its end counts. */
    {"{type: Succeeded, status: 'True'}", {0}, {0}, "x", true, VERDICT_SUCCEEDED, 0, ""},
};

static void exit_codes_follow_the_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *job = job_of(cases[i].conditions);
        json_t *pods = json_array();
        for (int p = 0; p < 3; p++) {
            if (cases[i].code[p]) {
                json_array_append_new(
                    pods, pod_of(p, cases[i].code[p], cases[i].second[p], cases[i].reason));
            }
        }
        struct verdict v = verdict_of(job, pods, cases[i].deleted);
        struct buf why;
        buf_init(&why, 4096);
        verdict_why(&v, job, pods, &why);
        assert_int_equal(v.end, cases[i].end);
        assert_int_equal(v.exit_code, cases[i].exit_code);
        assert_string_equal(buf_str(&why), cases[i].why);
        buf_done(&why);
        json_decref(pods);
        json_decref(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_follow_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
