/* Golden tables: from a job, its pods, Services, claims and environment, compared with upstream's
 * tables (training-operator v1.9.4: TestElasticGenerate, pytorchjob_controller_test.go). */
#include "control/fixture.h"
#include "control/objects.h"
#include "job/annotations.h"
#include "job/shell_variables.h"

#include <stdio.h>

struct rendered {
    json_t *pod;
    json_t *service;
    json_t *claims;
};

static struct rendered render(json_t *job, const char *role, int index)
{
    struct rendered r = {NULL, NULL, NULL};
    struct muster_err err = MUSTER_ERR_INIT;
    if (control_render(job, role, index, &r.pod, &r.service, &r.claims, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return r;
}

static void drop(struct rendered *r, json_t *job)
{
    json_decref(r->pod);
    json_decref(r->service);
    json_decref(r->claims);
    json_decref(job);
}

/* Compares the environment of container `n` with a text such as "A=1 B=2". */
static void check_env(json_t *pod, int n, const char *expected)
{
    char path[64];
    struct buf text;
    buf_init(&text, 1 << 14);
    snprintf(path, sizeof path, "spec.containers.%d.env", n);
    size_t index;
    json_t *each;
    json_array_foreach (doc_at(pod, path), index, each) {
        buf_format(&text, "%s%s=%s", index ? " " : "", doc_text(each, "name", "?"),
                   doc_text(each, "value", "?"));
    }
    assert_string_equal(buf_str(&text), expected);
    buf_done(&text);
}

static void every_rank_of_master_and_workers(void **state)
{
    (void)state;
    static const struct {
        const char *role;
        int index;
        const char *rank;
    } table[] = {{"Master", 0, "0"}, {"Worker", 0, "1"}, {"Worker", 1, "2"}, {"Worker", 2, "3"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *job = make_job(true, 3, "OnFailure", "{}");
        struct rendered r = render(job, table[i].role, table[i].index);
        char expected[512];
        snprintf(expected, sizeof expected,
                 "PYTHONUNBUFFERED=1 MASTER_PORT=23456 PET_MASTER_PORT=23456 "
                 "MASTER_ADDR=mnist-master-0 PET_MASTER_ADDR=mnist-master-0 WORLD_SIZE=4 RANK=%s "
                 "PET_NODE_RANK=%s PET_NPROC_PER_NODE=auto PET_NNODES=4",
                 table[i].rank, table[i].rank);
        check_env(r.pod, 0, expected);
        drop(&r, job);
    }
}

static void processes_per_pod_multiply_the_world(void **state)
{
    (void)state;
    json_t *job = make_job(true, 1, "OnFailure", "{}");
    doc_set_text(job, "spec.nprocPerNode", "2");
    struct rendered r = render(job, "Worker", 0);
    check_env(r.pod, 0,
              "PYTHONUNBUFFERED=1 MASTER_PORT=23456 PET_MASTER_PORT=23456 "
              "MASTER_ADDR=mnist-master-0 PET_MASTER_ADDR=mnist-master-0 WORLD_SIZE=4 RANK=1 "
              "PET_NODE_RANK=1 PET_NPROC_PER_NODE=2 PET_NNODES=2");
    drop(&r, job);
}

static void workers_without_a_master_get_no_master_variables(void **state)
{
    (void)state;
    json_t *job = make_job(false, 2, "OnFailure", "{}");
    struct rendered r = render(job, "Worker", 1);
    check_env(r.pod, 0, "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_NNODES=2");
    assert_string_equal(
        json_string_value(json_object_get(doc_at(r.pod, "metadata.labels"), "job-role")) ?: "-",
        "-");
    drop(&r, job);
}

/* TestElasticGenerate, and cases in which upstream panics (an empty rdzvConf), or in which jobs
 * would collide (etcd). */
static void elastic_policies(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        const char *env;
    } table[] = {
        {"{'minReplicas': 1, 'maxReplicas': 3, 'rdzvBackend': 'c10d', 'rdzvPort': 1234, 'rdzvHost': "
         "'localhost', 'rdzvId': 'rdzv-id', 'rdzvConf': [{'key': 'conf1', 'value': 'value1'}, "
         "{'key': 'conf2', 'value': 'value2'}], 'maxRestarts': 3}",
         "PET_RDZV_ENDPOINT=localhost:1234 PET_RDZV_BACKEND=c10d PET_NNODES=1:3 "
         "PET_MAX_RESTARTS=3 PET_RDZV_ID=rdzv-id PET_RDZV_CONF=conf1=value1,conf2=value2"},
        {"{'minReplicas': 1, 'maxReplicas': 3}",
         "PET_RDZV_ENDPOINT=mnist-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=1:3"},
        {"{}", "PET_RDZV_ENDPOINT=mnist-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=2:2"},
        {"{'standalone': true, 'rdzvConf': []}",
         "PET_RDZV_ENDPOINT=mnist-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=2:2 "
         "PET_STANDALONE="},
        {"{'rdzvBackend': 'etcd-v2', 'rdzvHost': 'etcd', 'rdzvPort': 2379}",
         "PET_RDZV_ENDPOINT=etcd:2379 PET_RDZV_BACKEND=etcd-v2 PET_NNODES=2:2 PET_RDZV_ID=job-1"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *job = make_job(false, 2, "OnFailure", "{}");
        doc_set(job, "spec.elasticPolicy", parse(table[i].policy));
        struct rendered r = render(job, "Worker", 0);
        char expected[512];
        snprintf(expected, sizeof expected, "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto %s",
                 table[i].env);
        check_env(r.pod, 0, expected);
        drop(&r, job);
    }
}

/* check_pod.c warns about exactly the variables that control_environment sets, and -e refuses
 * exactly these. */
static void the_list_of_variables_has_what_the_operator_sets(void **state)
{
    (void)state;
    json_t *job = make_job(true, 2, "OnFailure", "{}");
    doc_set(job, "spec.elasticPolicy",
            parse("{'minReplicas': 1, 'maxReplicas': 3, 'rdzvBackend': 'c10d', 'rdzvId': 'id', "
                  "'rdzvConf': [{'key': 'k', 'value': 'v'}], 'maxRestarts': 3, 'standalone': true, "
                  "'nProcPerNode': 2}"));
    doc_set(job, "metadata.annotations", json_pack("{s:s}", JOB_ANNOTATION_MAX_RESTARTS, "3"));
    struct rendered r = render(job, "Worker", 0);
    bool set[128] = {false};
    size_t i;
    json_t *variable;
    assert_true(shell_variable_count <= sizeof set);
    json_array_foreach (doc_at(r.pod, "spec.containers.0.env"), i, variable) {
        const char *name = doc_text(variable, "name", "?");
        if (!shell_variable_is(VARIABLE_OPERATOR, name)) {
            fail_msg("%s is not in job/shell_variables.c", name);
        }
        for (size_t k = 0; k < shell_variable_count; k++) {
            size_t length = strcspn(shell_variables[k].pattern, "*");
            set[k] = set[k] || strncmp(shell_variables[k].pattern, name, length) == 0;
        }
    }
    for (size_t k = 0; k < shell_variable_count; k++) {
        if ((shell_variables[k].kinds & VARIABLE_OPERATOR) && !set[k]) {
            fail_msg("the operator does not set %s", shell_variables[k].pattern);
        }
    }
    drop(&r, job);
}

static void the_deprecated_nproc_field_stands_in_its_own_place(void **state)
{
    (void)state;
    json_t *job = make_job(false, 2, "OnFailure", "{}");
    doc_set(job, "spec.elasticPolicy", parse("{'nProcPerNode': 4}"));
    struct rendered r = render(job, "Worker", 0);
    check_env(r.pod, 0,
              "PYTHONUNBUFFERED=1 PET_RDZV_ENDPOINT=mnist-worker-0:23456 PET_RDZV_BACKEND=c10d "
              "PET_NNODES=2:2 PET_NPROC_PER_NODE=4");
    drop(&r, job);
}

/* Our variables come after the user's own and override them, in every container except init
 * containers. */
static void our_variables_come_last_on_every_main_container(void **state)
{
    (void)state;
    json_t *job = make_job(false, 1, "OnFailure", "{}");
    doc_set(job, "spec.pytorchReplicaSpecs.Worker.template.spec",
            parse("{'initContainers': [{'name': 'i', 'image': 'x'}], 'containers': [{'name': "
                  "'side', 'image': 'x'}, {'name': 'pytorch', 'image': 'x', 'env': [{'name': "
                  "'PET_NNODES', 'value': 'mine'}]}]}"));
    struct rendered r = render(job, "Worker", 0);
    check_env(r.pod, 0, "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_NNODES=1");
    check_env(r.pod, 1, "PET_NNODES=mine PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_NNODES=1");
    assert_null(doc_at(r.pod, "spec.initContainers.0.env"));
    assert_null(doc_at(r.pod, "spec.containers.0.ports"));
    assert_document(doc_at(r.pod, "spec.containers.1.ports"),
                    "[{'name': 'pytorchjob-port', 'containerPort': 23456, 'protocol': 'TCP'}]");
    drop(&r, job);
}

static void labels_of_both_generations(void **state)
{
    (void)state;
    json_t *job = make_job(true, 2, "OnFailure", "{}");
    doc_set(job, "spec.pytorchReplicaSpecs.Worker.template.metadata",
            parse("{'labels': {'team': 'a', 'job-name': 'mine', 'training.kubeflow.org/job-name': "
                  "'no'}, 'annotations': {'x': 'y'}, 'finalizers': ['f']}"));
    struct rendered r = render(job, "Worker", 1);
    assert_document(doc_at(r.pod, "metadata.labels"),
                    "{'team': 'a', 'training.kubeflow.org/operator-name': "
                    "'pytorchjob-controller', 'training.kubeflow.org/job-name': 'mnist', "
                    "'training.kubeflow.org/replica-type': 'worker', "
                    "'training.kubeflow.org/replica-index': '1', 'group-name': 'kubeflow.org', "
                    "'job-name': 'mine', 'pytorch-job-name': 'mnist', 'controller-name': "
                    "'pytorch-operator', 'pytorch-replica-type': 'worker', "
                    "'pytorch-replica-index': '1'}");
    assert_document(doc_at(r.pod, "metadata.annotations"), "{'x': 'y'}");
    assert_document(doc_at(r.pod, "metadata.finalizers"), "['f']");
    assert_document(doc_at(r.pod, "metadata.ownerReferences"),
                    "[{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'name': 'mnist', "
                    "'uid': 'job-1', 'controller': true, 'blockOwnerDeletion': true}]");
    drop(&r, job);
}

static void the_master_or_else_worker_0_leads(void **state)
{
    (void)state;
    static const struct {
        bool master;
        const char *role;
        int index;
        const char *label;
    } table[] = {{true, "Master", 0, "master"},
                 {true, "Worker", 0, ""},
                 {false, "Worker", 0, "master"},
                 {false, "Worker", 1, ""}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *job = make_job(table[i].master, 2, "OnFailure", "{}");
        struct rendered r = render(job, table[i].role, table[i].index);
        const json_t *labels = doc_at(r.pod, "metadata.labels");
        const char *label = json_string_value(json_object_get(labels, CONTROL_LABEL("job-role")));
        assert_string_equal(label ? label : "", table[i].label);
        drop(&r, job);
    }
}

/* TestSetRestartPolicy. */
static void the_replicas_restart_policy_wins(void **state)
{
    (void)state;
    static const char *const table[][2] = {{"ExitCode", "Never"},
                                           {"Never", "Never"},
                                           {"Always", "Always"},
                                           {"OnFailure", "OnFailure"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *job = make_job(false, 1, table[i][0], "{}");
        doc_set_text(job, "spec.pytorchReplicaSpecs.Worker.template.spec.restartPolicy", "Never");
        struct rendered r = render(job, "Worker", 0);
        assert_string_equal(doc_text(r.pod, "spec.restartPolicy", ""), table[i][1]);
        drop(&r, job);
    }
}

/* The first Workers have another priority than the template: ElasticDL's --worker_pod_priority=0.5
 * needs this. */
static void the_first_workers_may_have_another_priority(void **state)
{
    (void)state;
    static const struct {
        const char *annotation, *role;
        int index;
        const char *priority;
    } table[] = {{"1", "Worker", 0, "high"},   {"1", "Worker", 1, "low"},
                 {"1", "Master", 0, ""},       {"9", "Worker", 1, "high"},
                 {"0", "Worker", 0, "low"},    {"-1", "Worker", 0, "low"},
                 {"half", "Worker", 0, "low"}, {"", "Worker", 0, "low"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *job = make_job(true, 2, "OnFailure", "{}");
        doc_set(job, "metadata.annotations", json_object());
        json_object_set_new(doc_at(job, "metadata.annotations"), "muster.dev/high-priority-workers",
                            json_string(table[i].annotation));
        doc_set_text(job, "spec.pytorchReplicaSpecs.Worker.template.spec.priorityClassName", "low");
        struct rendered r = render(job, table[i].role, table[i].index);
        assert_string_equal(doc_text(r.pod, "spec.priorityClassName", ""), table[i].priority);
        drop(&r, job);
    }
}

static void a_service_has_every_named_port(void **state)
{
    (void)state;
    json_t *job = make_job(true, -1, "Never", "{}");
    json_t *container = doc_at(job, "spec.pytorchReplicaSpecs.Master.template.spec.containers.0");
    doc_set(
        container, "ports",
        parse("[{'name': 'metrics', 'containerPort': 9090, 'protocol': 'UDP'}, {'containerPort': "
              "1}, {'name': 'pytorchjob-port', 'containerPort': 8080}]"));
    struct rendered r = render(job, "Master", 0);
    assert_string_equal(doc_text(r.service, "metadata.name", ""), "mnist-master-0");
    assert_document(doc_at(r.service, "spec"),
                    "{'clusterIP': 'None', 'selector': {'training.kubeflow.org/operator-name': "
                    "'pytorchjob-controller', 'training.kubeflow.org/job-name': 'mnist', "
                    "'training.kubeflow.org/replica-type': 'master', "
                    "'training.kubeflow.org/replica-index': '0'}, 'ports': [{'name': 'metrics', "
                    "'port': 9090, 'protocol': 'UDP'}, {'name': 'pytorchjob-port', 'port': 8080, "
                    "'protocol': 'TCP'}], 'publishNotReadyAddresses': true}");
    check_env(r.pod, 0,
              "PYTHONUNBUFFERED=1 MASTER_PORT=8080 PET_MASTER_PORT=8080 "
              "MASTER_ADDR=mnist-master-0 PET_MASTER_ADDR=mnist-master-0 WORLD_SIZE=1 RANK=0 "
              "PET_NODE_RANK=0 PET_NPROC_PER_NODE=auto PET_NNODES=1");
    drop(&r, job);
}

static void a_claim_template_makes_a_claim_per_index(void **state)
{
    (void)state;
    json_t *job = make_job(false, 2, "Never", "{}");
    doc_set(job, "spec.pytorchReplicaSpecs.Worker.volumeClaimTemplates",
            parse("[{'metadata': {'name': 'out', 'labels': {'a': 'b'}}, 'spec': {'accessModes': "
                  "['ReadWriteOnce']}}]"));
    doc_set(job, "spec.pytorchReplicaSpecs.Worker.template.spec.volumes",
            parse("[{'name': 'out', 'emptyDir': {}}, {'name': 'tmp', 'emptyDir': {}}]"));
    struct rendered r = render(job, "Worker", 1);
    assert_document(doc_at(r.pod, "spec.volumes"),
                    "[{'name': 'tmp', 'emptyDir': {}}, {'name': 'out', 'persistentVolumeClaim': "
                    "{'claimName': 'out-mnist-worker-1'}}]");
    assert_int_equal(json_array_size(r.claims), 1);
    assert_string_equal(doc_text(r.claims, "0.metadata.name", ""), "out-mnist-worker-1");
    assert_document(doc_at(r.claims, "0.spec"), "{'accessModes': ['ReadWriteOnce']}");
    assert_null(doc_at(r.claims, "0.metadata.ownerReferences"));
    drop(&r, job);
}

/* TestGenGeneralName. */
static void slashes_in_names_become_dashes(void **state)
{
    (void)state;
    json_t *job = make_job(false, 2, "Never", "{}");
    doc_set_text(job, "metadata.name", "1/2/3/4/5");
    struct rendered r = render(job, "Worker", 1);
    assert_string_equal(doc_text(r.pod, "metadata.name", ""), "1-2-3-4-5-worker-1");
    drop(&r, job);
}

static void a_replica_the_job_has_not_is_refused(void **state)
{
    (void)state;
    json_t *job = make_job(false, 2, "Never", "{}");
    struct muster_err err = MUSTER_ERR_INIT;
    json_t *made = NULL;
    assert_int_equal(control_render(job, "Master", 0, &made, &made, &made, &err), MUSTER_EINVAL);
    assert_string_equal(err.text, "mnist has no Master replica 0");
    assert_null(made);
    json_decref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_of_master_and_workers),
        cmocka_unit_test(processes_per_pod_multiply_the_world),
        cmocka_unit_test(workers_without_a_master_get_no_master_variables),
        cmocka_unit_test(elastic_policies),
        cmocka_unit_test(the_list_of_variables_has_what_the_operator_sets),
        cmocka_unit_test(the_deprecated_nproc_field_stands_in_its_own_place),
        cmocka_unit_test(our_variables_come_last_on_every_main_container),
        cmocka_unit_test(labels_of_both_generations),
        cmocka_unit_test(the_master_or_else_worker_0_leads),
        cmocka_unit_test(the_replicas_restart_policy_wins),
        cmocka_unit_test(the_first_workers_may_have_another_priority),
        cmocka_unit_test(a_service_has_every_named_port),
        cmocka_unit_test(a_claim_template_makes_a_claim_per_index),
        cmocka_unit_test(slashes_in_names_become_dashes),
        cmocka_unit_test(a_replica_the_job_has_not_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
