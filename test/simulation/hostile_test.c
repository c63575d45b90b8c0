/* Hostile jobs: jobs that make upstream's operator panic, and others that no schema would accept.
 * For each of them the check reports an error, and the core decides about the job or reports that
 * it cannot. */
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "control/control.h"
#include "job/check/check.h"

#include <stdio.h>
#include <string.h>

#define POD "'template': {'spec': {'containers': [{'name': 'pytorch', 'image': 'i'}]}}"
#define MASTER "'Master': {'replicas': 1, " POD "}"
#define WORKER "'Worker': {'replicas': 1, " POD "}"
#define SPECS(text) "{'pytorchReplicaSpecs': {" text "}}"
#define WITH(text) "{'pytorchReplicaSpecs': {" MASTER ", " WORKER "}, " text "}"
#define ELASTIC(text) "{'pytorchReplicaSpecs': {" WORKER "}, 'elasticPolicy': " text "}"
#define CONTAINERS(text)                                                                           \
    "{'pytorchReplicaSpecs': {'Master': {'replicas': 1, 'template': {'spec': {'containers': " text \
    "}}}}}"

struct hostile {
    const char *spec;
    const char *says;   /* what the check says, and of which field; NULL: nothing is wrong */
    const char *unread; /* why the core cannot read it; NULL: it can */
};

#define NO_CONTAINER "template.spec.containers must have at least one container"

static const struct hostile table[] = {
    /* Upstream's webhook and controller panic on these two. */
    {SPECS("'Master': null, " WORKER), "pytorchReplicaSpecs.Master: has no value", NULL},
    {ELASTIC("{'rdzvConf': []}"), NULL, NULL},
    {SPECS("'Worker': null"), "Worker: has no value", NULL},
    {SPECS("'Master': [], " WORKER), "Master: must be a mapping, not a list", NO_CONTAINER},
    {SPECS("'Master': 'x'"), "Master: must be a mapping, not \"x\"", NO_CONTAINER},
    {SPECS(""), "must have a Master, Workers or both", NULL},
    {"{}", "spec.pytorchReplicaSpecs: is missing", "spec.pytorchReplicaSpecs is required"},
    {"null", "spec: has no value", "spec.pytorchReplicaSpecs is required"},
    {"[]", "spec: must be a mapping", "spec.pytorchReplicaSpecs is required"},
    {"{'pytorchReplicaSpecs': null}", "has no value", "spec.pytorchReplicaSpecs is required"},
    {"{'pytorchReplicaSpecs': []}", "must be a mapping", "spec.pytorchReplicaSpecs is required"},
    {SPECS("'Chief': {" POD "}"), "Chief: unknown replica type (use Master and Worker)", NULL},
    {SPECS("'Master': {'replicas': 1}"), "Master.template: is missing", NO_CONTAINER},
    {SPECS("'Master': {'template': null}"), "Master.template: has no value", NO_CONTAINER},
    {SPECS("'Master': {'template': {'spec': null}}"), "spec: has no value", NO_CONTAINER},
    {CONTAINERS("null"), "containers: has no value", NO_CONTAINER},
    {CONTAINERS("[]"), "must have a container called pytorch", NO_CONTAINER},
    {CONTAINERS("[null]"), "containers[0]: must be a mapping", NO_CONTAINER},
    {CONTAINERS("{}"), "containers: must be a list", NO_CONTAINER},
    {CONTAINERS("[{'image': 'i'}]"), "containers[0].name: is missing", NULL},
    {CONTAINERS("[{'name': 'other', 'image': 'i'}]"), "must be called pytorch", NULL},
    {CONTAINERS("[{'name': 'pytorch', 'image': 'i', 'env': {'a': 1}, 'ports': [null]}]"),
     "env: must be a list", NULL},
    {CONTAINERS("[{'name': 'pytorch', 'image': 'i', 'ports': [null]}]"),
     "ports[0]: must be a mapping", NULL},
    {CONTAINERS("[{'name': 'pytorch', 'image': 'i', 'ports': [{'name': 'pytorchjob-port', "
                "'containerPort': 'x'}]}]"),
     "containerPort: must be a whole number", "containerPort must be a number of 0 or more"},
    {CONTAINERS("[{'name': 'pytorch', 'image': 'i', 'ports': [{'name': 'pytorchjob-port', "
                "'containerPort': 99999999999}]}]"),
     "99999999999 must be 1 to 65535", "containerPort must fit 32 bits"},
    {ELASTIC("[]"), "elasticPolicy: must be a mapping", NULL},
    {ELASTIC("{'rdzvConf': [null]}"), "rdzvConf[0]: must be a mapping", NULL},
    {ELASTIC("{'rdzvConf': {}}"), "rdzvConf: must be a list", "rdzvConf must be a list"},
    {ELASTIC("{'minReplicas': 3, 'maxReplicas': 2}"), "3 is more than maxReplicas, 2", NULL},
    {ELASTIC("{'minReplicas': -1}"), "-1 must be 1 or more",
     "minReplicas must be a number of 0 or more"},
    {SPECS("'Worker': {'replicas': -1, " POD "}"), "-1 must be 0 to 10000",
     "replicas must be a number of 0 or more"},
    {SPECS("'Worker': {'replicas': 2147483648, " POD "}"), "2147483648 must be 0 to 10000",
     "replicas must fit 32 bits"},
    {SPECS("'Worker': {'replicas': '2', " POD "}"), "must be a whole number, not \"2\"",
     "replicas must be a number of 0 or more"},
    {SPECS("'Worker': {'replicas': 1.5, " POD "}"), "1.5 must be a whole number",
     "replicas must be a number of 0 or more"},
    {SPECS("'Master': {'replicas': 0, " POD "}, " WORKER), "replicas: must be 1", NULL},
    {SPECS("'Worker': {'replicas': 0, " POD "}"), "replicas: must be at least 1", NULL},
    {SPECS("'Master': {'restartPolicy': 'Sometimes', " POD "}"), "not \"Sometimes\"",
     "restartPolicy has an unknown word"},
    {SPECS("'Master': {'restartPolicy': 3, " POD "}"), "must be text",
     "restartPolicy must be text"},
    {WITH("'runPolicy': []"), "runPolicy: must be a mapping", NULL},
    {WITH("'runPolicy': {'backoffLimit': -1}"), "-1 must be 0 or more",
     "backoffLimit must be a number of 0 or more"},
    {WITH("'runPolicy': {'activeDeadlineSeconds': -5}"), "-5 must be 0 or more",
     "activeDeadlineSeconds must be a number of 0 or more"},
    {WITH("'runPolicy': {'activeDeadlineSeconds': 9223372036854775807}"), NULL, NULL},
    {WITH("'runPolicy': {'ttlSecondsAfterFinished': -5}"), "-5 must be 0 or more",
     "ttlSecondsAfterFinished must be a number of 0 or more"},
    {WITH("'runPolicy': {'cleanPodPolicy': 'Some'}"), "not \"Some\"",
     "cleanPodPolicy has an unknown word"},
    {WITH("'runPolicy': {'suspend': 'yes'}"), "must be true or false",
     "suspend must be true or false"},
    {WITH("'runPolicy': {'schedulingPolicy': []}"), "must be a mapping", NULL},
    {WITH("'runPolicy': {'managedBy': 3}"), "must be text", "managedBy must be text"},
    {WITH("'nprocPerNode': 'many'"), "must be auto, cpu, gpu or a count", NULL},
    {WITH("'nprocPerNode': []"), "must be text, not a list", "spec.nprocPerNode must be text"},
    {SPECS("'Master': {'volumeClaimTemplates': [null], " POD "}"),
     "volumeClaimTemplates[0]: must be a mapping", NULL},
    {SPECS("'Master': {'volumeClaimTemplates': {}, " POD "}"), "must be a list",
     "volumeClaimTemplates must be a list"},
    {SPECS("'Master': {'volumeClaimTemplates': [{'metadata': {'name': 'x/../y'}}], " POD "}"),
     "metadata.name: \"x/../y\"", NULL},
};

static json_t *make_job(const char *spec)
{
    json_t *job = parse("{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': "
                        "{'name': 'case', 'namespace': 'default', 'uid': 'job-1'}}");
    char text[8192];
    snprintf(text, sizeof text, "{'spec': %s}", spec);
    json_object_update_new(job, parse(text));
    return job;
}

static void check_says(const struct hostile *h, const json_t *job)
{
    struct job_problems problems;
    struct buf out;
    job_problems_init(&problems, 20);
    problems.cluster = true;
    buf_init(&out, 65536);
    job_check(job, NULL, &problems);
    job_problems_print(&problems, "-", &out);
    if (h->says ? problems.errors == 0 || !strstr(buf_str(&out), h->says) : problems.errors > 0) {
        fail_msg("%s: the check says: %s", h->spec, buf_str(&out));
    }
    buf_done(&out);
    job_problems_done(&problems);
}

/* Checks that the fault is reported once: the next step has nothing to write. */
static void stalls_once(struct control_view *view, const char *sentence)
{
    struct control_effects fx;
    assert_int_equal(control_stalled(view, sentence, &fx, NULL), 0);
    assert_int_equal(fx.count, 2);
    assert_int_equal(fx.list[0].verb, CONTROL_UPDATE_STATUS);
    assert_string_equal(fx.list[1].name, "PyTorchJobInvalid");
    doc_set(view->job, "status", json_incref(fx.list[0].object));
    control_effects_done(&fx);
    assert_int_equal(control_stalled(view, sentence, &fx, NULL), 0);
    assert_int_equal(fx.count, 0);
    control_effects_done(&fx);
}

static void core_decides(const struct hostile *h, json_t *job)
{
    struct control_view view = {
        .job = job, .now_unix_ms = 1767225600000, .target = CONTROL_TARGET_CLUSTER};
    struct muster_err err = MUSTER_ERR_INIT;
    struct control_effects fx;
    int r = control_reconcile(&view, &fx, &err);
    if (h->unread ? r != MUSTER_EDATA || !strstr(err.text, h->unread) : r != 0) {
        fail_msg("%s: the core says: %s", h->spec, r < 0 ? err.text : "");
    }
    if (r < 0) {
        stalls_once(&view, err.text);
        return;
    }
    const char *broken = control_check_invariants(&view, &fx);
    if (broken) {
        fail_msg("%s: %s", h->spec, broken);
    }
    control_effects_done(&fx);
}

static void each_is_a_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *job = make_job(table[i].spec);
        check_says(&table[i], job);
        core_decides(&table[i], job);
        json_decref(job);
    }
}

/* What is not under spec: metadata and status with values that nobody should write. */
static void around_the_spec(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "{'metadata': {'name': 'case', 'uid': 'job-1', 'annotations': []}}",
        "{'metadata': {'name': 'case', 'uid': 'job-1', 'labels': 3}}",
        "{'metadata': {'name': 'case', 'uid': 'job-1', 'annotations': {'muster.dev/failures': 7}}}",
        "{'status': null}",
        "{'status': []}",
        "{'status': {'conditions': null, 'startTime': 3, 'counters': []}}",
        "{'status': {'conditions': [null, 3, {'type': 4}, {'status': 'True'}]}}",
        "{'status': {'replicaStatuses': {'Worker': null, 'Other': []}, 'completionTime': 'x'}}",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const struct hostile h = {parts[i], NULL, NULL};
        json_t *job = make_job(SPECS(WORKER));
        json_object_update_new(job, parse(parts[i]));
        core_decides(&h, job);
        json_decref(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_a_sentence),
        cmocka_unit_test(around_the_spec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
