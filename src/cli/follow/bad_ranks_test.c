/* Checks which ranks ended badly, and which message names them. */
#include "cli/follow/bad_ranks.h"

#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/yaml/yaml.h"

#include <stdio.h>

static json_t *job_of(void)
{
    return parse_yaml(
        "{apiVersion: kubeflow.org/v1, kind: PyTorchJob,\n"
        " metadata: {name: j, namespace: default, uid: u},\n"
        " spec: {pytorchReplicaSpecs: {\n"
        "  Master: {template: {spec: {containers: [{name: pytorch, image: i}]}}},\n"
        "  Worker: {replicas: 20, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}");
}

/* `late`: the pod has been restarted since that end. */
static json_t *pod_of(int rank, const char *phase, int exit_code, bool late)
{
    char text[2048];
    int index = rank == 0 ? 0 : rank - 1;
    const char *role = rank == 0 ? "master" : "worker";
    snprintf(text, sizeof text,
             "{metadata: {name: j-%s-%d, namespace: default, uid: p%d,\n"
             "  ownerReferences: [{kind: PyTorchJob, name: j, uid: u, controller: true}]},\n"
             " spec: {containers: [{name: pytorch, env: [{name: RANK, value: '%d'}]}]},\n"
             " status: {phase: %s, containerStatuses: [{name: pytorch, restartCount: 0,\n"
             "  %s: {%s: {exitCode: %d, reason: Error,\n"
             "   finishedAt: '2026-01-02T03:04:05Z'}}}]}}",
             role, index, rank, rank, phase, late ? "lastState" : "state",
             exit_code < 0 ? "running" : "terminated", exit_code);
    return parse_yaml(text);
}

/* Each row is one rank: its phase and exit code (-1: none), whether it was told to end while it
 * ran, or could not be told, and the message about it (NULL: none). */
static void each_rank_is_judged_by_itself(void **state)
{
    (void)state;
    static const struct {
        const char *phase;
        int code;
        enum { PLAIN, STOPPED, LATE, UNTOLD } seen;
        const char *state;
        const char *message;
    } table[] = {
        {"Succeeded", 0, PLAIN, "Succeeded", NULL},
        {"Succeeded", 0, STOPPED, "Stopped", "j-worker-0 (rank 1) was stopped"},
        {"Failed", 3, PLAIN, "Failed", "j-worker-0 (rank 1) exited with code 3"},
        {"Failed", 139, PLAIN, "Failed", "j-worker-0 (rank 1) was killed by signal 11 (SIGSEGV)"},
        {"Failed", 143, STOPPED, "Stopped", "j-worker-0 (rank 1) was stopped"},
        {"Running", -1, PLAIN, "Stopped", "j-worker-0 (rank 1) was stopped"},
        {"Pending", -1, PLAIN, "Pending", "j-worker-0 (rank 1) never ran"},
        {"Pending", -1, STOPPED, "Pending", "j-worker-0 (rank 1) never ran"},
        {"Running", -1, UNTOLD, "Stopped", "j-worker-0 (rank 1) was not seen to end"},
        {"Pending", -1, UNTOLD, "Pending", "j-worker-0 (rank 1) was not seen to run"},
        {"Running", 3, LATE, "Failed", "j-worker-0 (rank 1) exited with code 3"},
        {"Running", 0, LATE, "Succeeded", NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *job = job_of();
        json_t *pod = pod_of(1, table[i].phase, table[i].code, table[i].seen == LATE);
        json_t *pods = json_pack("[O]", pod);
        json_t *uids = parse("{'p1': true}");
        const struct bad_ranks_seen seen = {table[i].seen == STOPPED ? uids : NULL,
                                            table[i].seen == LATE ? uids : NULL,
                                            table[i].seen == UNTOLD};
        json_t *list = bad_ranks_list(job, pods, &seen);
        assert_string_equal(bad_ranks_state(job, pod, &seen), table[i].state);
        assert_int_equal(json_array_size(list), table[i].message ? 1 : 0);
        const json_t *entry = json_array_get(list, 0);
        if (table[i].message) {
            assert_string_equal(doc_text(entry, "message", ""), table[i].message);
            assert_string_equal(doc_text(entry, "state", ""), table[i].state);
            assert_int_equal(doc_int(entry, "rank", -1), 1);
            assert_int_equal(doc_int(entry, "exitCode", -1), table[i].code);
        }
        json_decref(list);
        json_decref(uids);
        json_decref(pods);
        json_decref(pod);
        json_decref(job);
    }
}

/* Such a container may be a service mesh's. */
static void what_was_put_beside_a_rank_may_run_on(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *state;
    } table[] = {{0, "Succeeded"}, {3, "Failed"}, {-1, "Stopped"}};
    json_t *job = job_of();
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *pod = pod_of(1, "Running", table[i].code, false);
        doc_set_text(job, "spec.pytorchReplicaSpecs.Worker.restartPolicy", "Never");
        json_array_append_new(doc_at(pod, "status.containerStatuses"),
                              parse("{'name': 'mesh', 'state': {'running': {}}}"));
        const struct bad_ranks_seen seen = {NULL, NULL, false};
        assert_string_equal(bad_ranks_state(job, pod, &seen), table[i].state);
        json_decref(pod);
    }
    json_decref(job);
}

static void many_are_counted(void **state)
{
    (void)state;
    json_t *job = job_of();
    json_t *pods = json_array();
    json_array_append_new(pods, pod_of(0, "Succeeded", 0, false));
    for (int rank = 1; rank <= 12; rank++) {
        json_array_append_new(
            pods, pod_of(rank, rank == 12 ? "Running" : "Failed", rank == 12 ? -1 : rank, false));
    }
    json_t *list = bad_ranks_list(job, pods, &(struct bad_ranks_seen){0});
    struct buf out;
    buf_init(&out, 4096);
    bad_ranks_say(list, "Stopped", NULL, "; ", &out);
    assert_string_equal(buf_str(&out), "; j-worker-11 (rank 12) was stopped");
    buf_clear(&out);
    bad_ranks_say(list, NULL, "j-worker-0", "; also ", &out);
    assert_non_null(strstr(buf_str(&out), "; also j-worker-1 (rank 2) exited with code 2, "));
    assert_null(strstr(buf_str(&out), "(rank 1)"));
    assert_non_null(strstr(buf_str(&out), "(rank 9) exited with code 9 and 3 more"));
    buf_clear(&out);
    bad_ranks_say(list, "Pending", NULL, "; ", &out);
    assert_int_equal(out.used, 0);
    buf_done(&out);
    json_decref(list);
    json_decref(pods);
    json_decref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_is_judged_by_itself),
        cmocka_unit_test(what_was_put_beside_a_rank_may_run_on),
        cmocka_unit_test(many_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
