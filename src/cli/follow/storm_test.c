/* Checks that the first failure is kept, and that restarts are counted also when pods are created
 * again. */
#include "cli/follow/storm.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/yaml/yaml.h"

static const char job_text[] =
    "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, namespace: default, uid: "
    "u}, spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: "
    "pytorch, image: i}]}}}}}}";

/* Returns a pod with this index, which was restarted this many times, and whose last end had this
 * code, at this second. */
static json_t *pod_of(int index, int uid, const char *phase, int restarts, int code, int second)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{metadata: {name: j-worker-%d, namespace: default, uid: p%d,\n"
             "  labels: {training.kubeflow.org/job-name: j,\n"
             "   training.kubeflow.org/operator-name: pytorchjob-controller,\n"
             "   training.kubeflow.org/replica-type: worker,\n"
             "   training.kubeflow.org/replica-index: '%d'},\n"
             "  ownerReferences: [{kind: PyTorchJob, name: j, uid: u, controller: true}]},\n"
             " spec: {containers: [{name: pytorch}]},\n"
             " status: {phase: %s, containerStatuses: [{name: pytorch, restartCount: %d,\n"
             "  %s: {terminated: {exitCode: %d, reason: Error,\n"
             "   finishedAt: '2026-01-02T03:04:%02dZ'}}}]}}",
             index, uid, index, phase, restarts,
             strcmp(phase, "Failed") == 0 ? "state" : "lastState", code, second);
    return parse_yaml(text);
}

static void assert_first(const struct storm *storm, const char *line, const char *expected)
{
    struct buf out;
    buf_init(&out, 4096);
    storm_print(storm, line, &out);
    assert_string_equal(buf_str(&out), expected);
    buf_done(&out);
}

static void the_first_failure_is_kept_over_restarts(void **state)
{
    (void)state;
    struct storm storm;
    json_t *job = parse_yaml(job_text);
    storm_init(&storm);
    assert_first(&storm, "said", "");
    json_t *last = NULL;
    for (int restarts = 1; restarts <= 4; restarts++) {
        json_t *pod = pod_of(1, 1, "Running", restarts, restarts == 1 ? 3 : 98, 10 * restarts);
        storm_pod(&storm, job, last, pod);
        assert_int_equal(storm_restarts(&storm, pod), restarts);
        assert_int_equal(storm_is_due(&storm, pod), restarts == 3);
        json_decref(last);
        last = pod;
    }
    assert_first(&storm, "no data", "j-worker-1 (rank 1) exited with code 3: \"no data\"");
    assert_first(&storm, NULL, "j-worker-1 (rank 1) exited with code 3");
    json_decref(last);
    storm_done(&storm);
    json_decref(job);
}

/* The earliest failure counts as the first, although a watch may report a later one before it. */
static void the_earliest_of_several_ranks_is_the_first(void **state)
{
    (void)state;
    struct storm storm;
    json_t *job = parse_yaml(job_text);
    json_t *late = pod_of(0, 1, "Failed", 0, 1, 30);
    json_t *early = pod_of(1, 2, "Failed", 0, 7, 29);
    storm_init(&storm);
    storm_pod(&storm, job, NULL, late);
    storm_pod(&storm, job, NULL, early);
    assert_first(&storm, NULL, "j-worker-1 (rank 1) exited with code 7");
    json_decref(late);
    json_decref(early);
    storm_done(&storm);
    json_decref(job);
}

static void pods_made_again_are_counted(void **state)
{
    (void)state;
    struct storm storm;
    json_t *job = parse_yaml(job_text);
    json_t *before = NULL;
    storm_init(&storm);
    for (int uid = 1; uid <= 5; uid++) {
        json_t *fresh = pod_of(0, uid, "Pending", 0, 0, 0);
        json_t *failed = pod_of(0, uid, "Failed", 0, 130, uid);
        storm_pod(&storm, job, before, fresh);
        assert_int_equal(storm_is_due(&storm, fresh), uid == 4);
        storm_pod(&storm, job, fresh, failed);
        assert_int_equal(storm_restarts(&storm, failed), uid - 1);
        json_decref(before);
        json_decref(fresh);
        before = failed;
    }
    json_decref(before);
    storm_done(&storm);
    json_decref(job);
}

static void a_pod_that_was_only_scaled_away_did_not_fail(void **state)
{
    (void)state;
    struct storm storm;
    json_t *job = parse_yaml(job_text);
    json_t *one = pod_of(0, 1, "Running", 0, 0, 0);
    json_t *two = pod_of(0, 2, "Running", 0, 0, 0);
    storm_init(&storm);
    storm_pod(&storm, job, NULL, one);
    storm_pod(&storm, job, one, two);
    assert_int_equal(storm_restarts(&storm, two), 0);
    json_decref(one);
    json_decref(two);
    storm_done(&storm);
    json_decref(job);
}

/* A kubelet invents this end for a container that was waiting for its image. */
static void what_was_deleted_before_it_began_is_no_failure(void **state)
{
    (void)state;
    struct storm storm;
    json_t *job = parse_yaml(job_text);
    json_t *pod = pod_of(1, 1, "Failed", 0, 137, 10);
    json_t *end = doc_at(pod, "status.containerStatuses.0.state.terminated");
    json_object_set_new(end, "reason", json_string("ContainerStatusUnknown"));
    storm_init(&storm);
    json_object_set_new(doc_at(pod, "metadata"), "deletionTimestamp",
                        json_string("2026-01-02T03:04:05Z"));
    storm_pod(&storm, job, NULL, pod);
    assert_first(&storm, NULL, "");
    json_object_del(doc_at(pod, "metadata"), "deletionTimestamp"); /* a restarted node reports it */
    storm_pod(&storm, job, NULL, pod);
    assert_string_not_equal(storm.first, "");
    json_decref(pod);
    json_decref(job);
    storm_done(&storm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_failure_is_kept_over_restarts),
        cmocka_unit_test(the_earliest_of_several_ranks_is_the_first),
        cmocka_unit_test(pods_made_again_are_counted),
        cmocka_unit_test(a_pod_that_was_only_scaled_away_did_not_fail),
        cmocka_unit_test(what_was_deleted_before_it_began_is_no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
