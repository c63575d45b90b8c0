/* Objects that come by the API, without a text and places; and fields that may not change. The
 * files of test/data/lint are in lint_test.c. */
#include "job/check/check.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "job/file/file.h"

#define JOB(spec)                                                                                  \
    "{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'a'},'spec':" spec "}"
#define POD "'template':{'spec':{'containers':[{'name':'pytorch','image':'i'}]}}"

static void expect_problems_on(bool cluster, const char *text, const char *expected)
{
    struct job_problems problems;
    struct buf out;
    json_t *doc = parse(text);
    job_problems_init(&problems, 20);
    problems.cluster = cluster;
    buf_init(&out, 65536);
    job_check(doc, NULL, &problems);
    job_problems_print(&problems, "-", &out);
    assert_string_equal(buf_str(&out), expected);
    buf_done(&out);
    job_problems_done(&problems);
    json_decref(doc);
}

static void expect_problems(const char *text, const char *expected)
{
    expect_problems_on(false, text, expected);
}

#define TEMPLATE(fields, resources)                                                                \
    JOB("{'pytorchReplicaSpecs':{'Master':{'replicas':1,'template':{'spec':{" fields               \
        "'containers':[{'name':'pytorch','image':'i','resources':{'limits':{" resources            \
        "}}}]}}}}}")

/* A cluster can do things that this machine cannot; an error is an error on both. */
static void what_is_said_depends_on_where_it_runs(void **state)
{
    (void)state;
    static const struct {
        const char *job, *here, *cluster;
    } table[] = {
        {TEMPLATE("'nodeSelector':{'zone':'a'},", ""),
         "-: warning: spec.pytorchReplicaSpecs.Master.template.spec.nodeSelector: has no effect on "
         "this machine: there is one machine\n",
         ""},
        {TEMPLATE("'resourceClaims':[{'name':'gpu'}],", ""),
         "-: error: spec.pytorchReplicaSpecs.Master.template.spec.resourceClaims: cannot be run on "
         "this machine: dynamic resources need a cluster's driver; GPUs are asked for by "
         "nvidia.com/gpu\n",
         ""},
        {TEMPLATE("", "'amd.com/gpu':1"),
         "-: warning: spec.pytorchReplicaSpecs.Master.template.spec.containers[0].resources.limits["
         "amd.com/gpu]: has no effect on this machine: every rank sees all AMD GPUs (let the "
         "script choose, for example with HIP_VISIBLE_DEVICES)\n",
         ""},
        {JOB("{'pytorchReplicaSpecs':{'Master':{" POD "}}}"),
         "-: warning: spec.pytorchReplicaSpecs.Master: has no replicas; it is 1 here, but the "
         "training-operator of a cluster refuses the job (add replicas: 1)\n",
         ""},
        {JOB("{'pytorchReplicaSpecs':{'Master':{'replicas':2," POD "}}}"),
         "-: error: spec.pytorchReplicaSpecs.Master.replicas: must be 1 (set Worker.replicas for "
         "more ranks)\n",
         "-: error: spec.pytorchReplicaSpecs.Master.replicas: must be 1 (set Worker.replicas for "
         "more ranks)\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        expect_problems_on(false, table[i].job, table[i].here);
        expect_problems_on(true, table[i].job, table[i].cluster);
    }
}

/* Names and cases come from upstream's webhook test, TestValidateV1PyTorchJob. */
static void what_upstreams_webhook_refuses_is_refused(void **state)
{
    (void)state;
    expect_problems(JOB("{'pytorchReplicaSpecs':{'Master':{'replicas':1," POD "},"
                        "'Worker':{'replicas':2," POD "}}}"),
                    "");
    expect_problems(JOB("{'pytorchReplicaSpecs':{'Master':{'replicas':1,'template':{'spec':"
                        "{'containers':[]}}}}}"),
                    "-: error: spec.pytorchReplicaSpecs.Master.template.spec.containers: must have "
                    "a container called pytorch\n");
    expect_problems(JOB("{'pytorchReplicaSpecs':{'Master':{'replicas':1,'template':{'spec':"
                        "{'containers':[{'name':'pytorch','image':''}]}}}}}"),
                    "-: error: spec.pytorchReplicaSpecs.Master.template.spec.containers[0].image: "
                    "\"\" must not be empty\n");
    expect_problems(JOB("{'pytorchReplicaSpecs':{'Master':{'replicas':2," POD "}}}"),
                    "-: error: spec.pytorchReplicaSpecs.Master.replicas: must be 1 (set "
                    "Worker.replicas for more ranks)\n");
    expect_problems(JOB("{'pytorchReplicaSpecs':{'Worker':{'replicas':0," POD "}}}"),
                    "-: error: spec.pytorchReplicaSpecs.Worker.replicas: must be at least 1 (leave "
                    "Worker out for a job of one rank)\n");
    expect_problems(JOB("{'runPolicy':{'managedBy':'me'},'pytorchReplicaSpecs':"
                        "{'Worker':{" POD "}}}"),
                    "-: error: spec.runPolicy.managedBy: must be one of "
                    "kubeflow.org/training-operator, kueue.x-k8s.io/multikueue; not \"me\"\n");
    expect_problems(
        JOB("{'elasticPolicy':{},'pytorchReplicaSpecs':{'Master':{'replicas':1," POD "}}}"),
        "-: error: spec.elasticPolicy: needs Workers, and the job has none (add "
        "spec.pytorchReplicaSpecs.Worker)\n");
    expect_problems(JOB("{'elasticPolicy':{'nProcPerNode':1},'pytorchReplicaSpecs':"
                        "{'Worker':{" POD "}}}"),
                    "-: warning: spec.elasticPolicy.nProcPerNode: is deprecated (use "
                    "spec.nprocPerNode only)\n");
}

/* §3 of upstream's webhook lets these pass; some of them crash it or its controller. */
static void what_upstreams_webhook_lets_pass_is_refused(void **state)
{
    (void)state;
    expect_problems(JOB("{'pytorchReplicaSpecs':{'Master':null}}"),
                    "-: error: spec.pytorchReplicaSpecs.Master: has no value (give it a value, or "
                    "indent the lines that belong to it)\n");
    expect_problems(JOB("{'pytorchReplicaSpecs':{}}"),
                    "-: error: spec.pytorchReplicaSpecs: must have a Master, Workers or both\n");
    expect_problems(JOB("null"), "-: error: spec: has no value (give it a value, or indent the "
                                 "lines that belong to it)\n");
    expect_problems("[]", "-: error: this document is not a mapping (an object begins with "
                          "apiVersion: and kind:)\n");
    expect_problems("{'kind':1}", "-: error: kind: must be text that is not empty (write kind: "
                                  "PyTorchJob)\n");
    expect_problems("{}", "-: error: kind: is missing (muster reads PyTorchJob, ConfigMap, "
                          "Secret, PersistentVolumeClaim and Namespace)\n");
}

static void verbose_notes_say_how_fields_are_supported(void **state)
{
    (void)state;
    struct job_problems problems;
    json_t *doc = parse("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'}}");
    job_problems_init(&problems, 20);
    problems.verbose = true;
    job_check(doc, NULL, &problems);
    assert_int_equal(problems.errors, 0);
    assert_int_equal(problems.count, 4);
    assert_string_equal(problems.list[3].path, "metadata.name");
    assert_string_equal(problems.list[3].message, "the object's name");
    job_problems_done(&problems);
    json_decref(doc);
}

static void expect_update(const char *before, const char *after, size_t errors)
{
    struct job_problems problems;
    json_t *old = parse(before);
    json_t *new = parse(after);
    job_problems_init(&problems, 20);
    job_check_update(old, new, &problems);
    if (problems.errors != errors) {
        fail_msg("%s -> %s: %zu errors", before, after, problems.errors);
    }
    job_problems_done(&problems);
    json_decref(old);
    json_decref(new);
}

static void manager_and_queue_cannot_change(void **state)
{
    (void)state;
    static const char a[] = "{'spec':{'runPolicy':{'managedBy':'a'}}}";
    static const char b[] = "{'spec':{'runPolicy':{'managedBy':'b'}}}";
    static const char q[] = "{'spec':{'runPolicy':{'schedulingPolicy':{'queue':'q'}}}}";
    static const char r[] = "{'spec':{'runPolicy':{'schedulingPolicy':{'queue':'r'}}}}";
    expect_update(a, a, 0);
    expect_update(a, b, 1);
    expect_update(a, "{}", 1);
    expect_update("{}", a, 1);
    expect_update(q, q, 0);
    expect_update(q, r, 1);
    expect_update(q, "{}", 0); /* upstream's transition rule */
    expect_update("{}", q, 0);
}

/* The list has a limit, and so has the time that it takes to fill it. */
static void a_file_of_mistakes_costs_no_more_than_its_list(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 8 << 20);
    buf_text(&text, "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n");
    for (int i = 0; i < 90000; i++) {
        buf_format(&text, "unknown%d: 1\n", i);
    }
    buf_text(&text, "image: 1\n");
    struct job_problems problems;
    struct job_file file = {0};
    job_problems_init(&problems, 10);
    assert_int_equal(job_file_read(text.data, text.used, &file, &problems, NULL), 0);
    assert_int_equal(problems.count, 10);
    assert_true(problems.dropped > 89000);
    job_problems_done(&problems);
    job_file_done(&file);
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_depends_on_where_it_runs),
        cmocka_unit_test(what_upstreams_webhook_refuses_is_refused),
        cmocka_unit_test(what_upstreams_webhook_lets_pass_is_refused),
        cmocka_unit_test(verbose_notes_say_how_fields_are_supported),
        cmocka_unit_test(manager_and_queue_cannot_change),
        cmocka_unit_test(a_file_of_mistakes_costs_no_more_than_its_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
