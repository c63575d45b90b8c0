/* The typed view of a job: it has upstream's defaults (pytorch_defaults.go), and a malformed object
 * is refused. */
#include "job/job.h"

#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#define POD "'template':{'spec':{'containers':[{'name':'pytorch','image':'i'}]}}"

static struct job read_job(const char *text)
{
    struct job job = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    json_t *doc = parse(text);
    int r = job_read(doc, &job, &err);
    json_decref(doc);
    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    return job;
}

static void missing_fields_get_upstreams_defaults(void **state)
{
    (void)state;
    struct job job = read_job("{'metadata':{'name':'a'},'spec':{'pytorchReplicaSpecs':"
                              "{'Master':{" POD "},'Worker':{'replicas':3," POD "}}}}");
    assert_string_equal(job.name, "a");
    assert_string_equal(job.namespace, "default");
    assert_string_equal(job.uid, "");
    assert_int_equal(job.replica[JOB_MASTER].replicas, 1);
    assert_int_equal(job.replica[JOB_MASTER].restart_policy, JOB_ON_FAILURE);
    assert_int_equal(job.replica[JOB_WORKER].port, 23456);
    assert_int_equal(job_total_replicas(&job), 4);
    assert_int_equal(job.clean_policy, JOB_CLEAN_NONE);
    assert_int_equal(job.ttl_s, JOB_UNSET);
    assert_int_equal(job.active_deadline_s, JOB_UNSET);
    assert_int_equal(job.backoff_limit, JOB_UNSET);
    assert_false(job.suspend);
    assert_null(job.managed_by);
    assert_false(job.elastic.present);
    assert_string_equal(job.nproc_per_node, "auto");
    job_done(&job);
}

static void every_field_is_read(void **state)
{
    (void)state;
    struct job job = read_job(
        "{'metadata':{'name':'a','namespace':'n','uid':'u'},'spec':{'nprocPerNode':'2',"
        "'runPolicy':{'cleanPodPolicy':'All','ttlSecondsAfterFinished':1,'suspend':true,"
        "'activeDeadlineSeconds':2,'backoffLimit':0,'managedBy':'kueue.x-k8s.io/multikueue'},"
        "'elasticPolicy':{'minReplicas':1,'maxReplicas':4,'rdzvBackend':'etcd','rdzvPort':1234,"
        "'rdzvHost':'h','rdzvId':'i','rdzvConf':[{'key':'k','value':'v'}],'standalone':true,"
        "'maxRestarts':9,'metrics':[]},"
        "'pytorchReplicaSpecs':{'Worker':{'replicas':2,'restartPolicy':'ExitCode',"
        "'volumeClaimTemplates':[{}],'template':{'spec':{'containers':[{'name':'sidecar'},"
        "{'name':'pytorch','ports':[{'containerPort':80},"
        "{'name':'pytorchjob-port','containerPort':99}]}]}}}}}}");
    const struct job_replica *worker = &job.replica[JOB_WORKER];
    assert_false(job.replica[JOB_MASTER].present);
    assert_int_equal(worker->restart_policy, JOB_EXIT_CODE);
    assert_string_equal(job_restart_policy_name(worker->restart_policy), "ExitCode");
    assert_int_equal(worker->port, 99);
    assert_int_equal(json_array_size(worker->claim_templates), 1);
    assert_string_equal(doc_text(job_main_container(worker), "name", ""), "pytorch");
    assert_int_equal(job.clean_policy, JOB_CLEAN_ALL);
    assert_int_equal(job.ttl_s + job.active_deadline_s + job.backoff_limit, 3);
    assert_true(job.suspend);
    assert_string_equal(job.managed_by, "kueue.x-k8s.io/multikueue");
    assert_int_equal(job.elastic.min_replicas, 1);
    assert_int_equal(job.elastic.max_replicas, 4);
    assert_string_equal(job.elastic.rdzv_backend, "etcd");
    assert_int_equal(job.elastic.rdzv_port, 1234);
    assert_string_equal(job.elastic.rdzv_host, "h");
    assert_string_equal(job.elastic.rdzv_id, "i");
    assert_int_equal(json_array_size(job.elastic.rdzv_conf), 1);
    assert_true(job.elastic.standalone);
    assert_int_equal(job.elastic.max_restarts, 9);
    assert_non_null(job.elastic.metrics);
    assert_string_equal(job.nproc_per_node, "2");
    job_done(&job);
}

static void elastic_bounds_fill_each_other(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        int min;
        int max;
    } cases[] = {
        {"{'minReplicas':1,'maxReplicas':5}", 1, 5},
        {"{'minReplicas':2}", 2, 2},
        {"{'maxReplicas':4}", 4, 4},
        {"{}", 3, 3}, /* the number of workers */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{'spec':{'elasticPolicy':%s,"
                 "'pytorchReplicaSpecs':{'Worker':{'replicas':3," POD "}}}}",
                 cases[i].policy);
        struct job job = read_job(text);
        assert_int_equal(job.elastic.min_replicas, cases[i].min);
        assert_int_equal(job.elastic.max_replicas, cases[i].max);
        job_done(&job);
    }
}

static void the_deprecated_process_count_is_text_and_replaces_auto(void **state)
{
    (void)state;
    struct job job = read_job("{'spec':{'elasticPolicy':{'nProcPerNode':4},"
                              "'pytorchReplicaSpecs':{'Worker':{" POD "}}}}");
    struct job copy = job; /* a copy must not point into the original */
    memset(&job, 0x5a, sizeof job);
    assert_null(copy.nproc_per_node);
    assert_string_equal(copy.elastic.nproc_per_node, "4");
    job_done(&copy);
}

static void malformed_objects_are_refused_with_the_field(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"{}", "spec.pytorchReplicaSpecs is required"},
        {"{'spec':{'pytorchReplicaSpecs':[]}}", "spec.pytorchReplicaSpecs is required"},
        {"{'spec':{'pytorchReplicaSpecs':{'Master':{}}}}", "containers must have"},
        {"{'spec':{'pytorchReplicaSpecs':{'Master':{'replicas':-1," POD "}}}}", "replicas must"},
        {"{'spec':{'pytorchReplicaSpecs':{'Master':{'replicas':'1'," POD "}}}}", "replicas must"},
        {"{'spec':{'pytorchReplicaSpecs':{'Master':{'replicas':9999999999," POD "}}}}", "32 bits"},
        {"{'spec':{'pytorchReplicaSpecs':{'Master':{'restartPolicy':'x'," POD "}}}}", "word"},
        {"{'spec':{'pytorchReplicaSpecs':{},'nprocPerNode':2}}", "nprocPerNode must be text"},
        {"{'spec':{'pytorchReplicaSpecs':{},'runPolicy':{'suspend':1}}}", "suspend must be true"},
        {"{'spec':{'pytorchReplicaSpecs':{},'elasticPolicy':{'rdzvConf':{}}}}", "must be a list"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job = {0};
        struct muster_err err = MUSTER_ERR_INIT;
        json_t *doc = parse(cases[i].text);
        assert_int_equal(job_read(doc, &job, &err), MUSTER_EDATA);
        assert_non_null(strstr(err.text, cases[i].says));
        assert_null(job.object); /* outputs are untouched */
        json_decref(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_fields_get_upstreams_defaults),
        cmocka_unit_test(every_field_is_read),
        cmocka_unit_test(elastic_bounds_fill_each_other),
        cmocka_unit_test(the_deprecated_process_count_is_text_and_replaces_auto),
        cmocka_unit_test(malformed_objects_are_refused_with_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
