/* What the operator learns about a training-operator that it finds. */
#include "operator/upstream.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/time/timestamp.h"

#include <stdio.h>

static json_t *make_deployment(const char *spec, const char *container)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "{'spec': {%s 'template': {'spec': {'containers': [{'name': 'sidecar', 'args': "
                   "['--enable-scheme=mpijob']}, {'name': 'training-operator', %s}]}}}}",
                   spec, container);
    return parse(text);
}

static const struct {
    const char *spec, *container;
    bool runs, everywhere, in_a, in_b;
} deployments[] = {
    {"", "'command': ['/manager']", true, true, true, true},
    {"'replicas': 1,", "'command': ['/manager', '--leader-elect']", true, true, true, true},
    {"'replicas': 0,", "'command': ['/manager']", false, true, true, true},
    {"", "'args': ['--enable-scheme=tfjob', '--enable-scheme=mpijob']", false, true, true, true},
    {"", "'args': ['--enable-scheme=tfjob', '-enable-scheme', 'PyTorchJob']", true, true, true,
     true},
    {"", "'command': ['/manager', '--namespace=a']", true, true, true, false},
    {"", "'args': ['--namespace', 'a']", true, true, true, false},
    {"", "'env': [{'name': 'KUBEFLOW_NAMESPACE', 'value': 'b'}]", true, true, false, true},
    {"", "'env': [{'name': 'KUBEFLOW_NAMESPACE', 'value': 'b'}], 'args': ['--namespace=a']", true,
     true, true, false},
    {"", "'args': ['--enable-scheme']", true, true, true, true}, /* damaged: it may run */
    {"", "'args': [3, null]", true, true, true, true},
};

static void who_works_on_our_jobs_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof deployments / sizeof deployments[0]; i++) {
        json_t *d = make_deployment(deployments[i].spec, deployments[i].container);
        assert_int_equal(upstream_runs(d), deployments[i].runs);
        assert_int_equal(upstream_is_in(d, ""), deployments[i].everywhere);
        assert_int_equal(upstream_is_in(d, "a"), deployments[i].in_a);
        assert_int_equal(upstream_is_in(d, "b"), deployments[i].in_b);
        json_decref(d);
    }
}

/* The last pod may end slowly. */
static void one_that_is_scaled_down_runs_until_its_pods_are_gone(void **state)
{
    (void)state;
    json_t *d = parse("{'spec': {'replicas': 0}, 'status': {'replicas': 1}}");
    assert_true(upstream_runs(d));
    json_decref(d);
}

#define HOOK(plural)                                                                               \
    "{'clientConfig': {'service': {'namespace': 'kf'}}, 'rules': [{'resources': ['" plural "']}]}"

static void the_webhook_of_our_jobs_is_found_among_others(void **state)
{
    (void)state;
    static const struct {
        const char *text, *namespace;
        int index;
    } table[] = {
        {"{'webhooks': [" HOOK("jaxjobs") "," HOOK("pytorchjobs") "," HOOK("tfjobs") "]}", "kf", 1},
        {"{'webhooks': [" HOOK("*") "]}", "kf", 0},
        {"{'webhooks': [" HOOK("tfjobs") "]}", "kf", -1},
        {"{'webhooks': []}", "kubeflow", -1},
        {"{'webhooks': [{'rules': [{'resources': ['pytorchjobs']}]}]}", "kubeflow", 0},
        {"{'webhooks': [3, {'rules': 4}, {'rules': [{'resources': [null]}]}]}", "kubeflow", -1},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *namespace;
        json_t *configuration = parse(table[i].text);
        assert_int_equal(upstream_find_webhook(configuration, &namespace), table[i].index);
        assert_string_equal(namespace, table[i].namespace);
        json_decref(configuration);
    }
}

static void other_kinds_are_named_once(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1000);
    json_t *list = parse("{'resources': [{'name': 'tfjobs', 'kind': 'TFJob'}, {'name': "
                         "'tfjobs/status', 'kind': 'TFJob'}, {'name': 'pytorchjobs', 'kind': "
                         "'PyTorchJob'}, {'name': 'mpijobs', 'kind': 'MPIJob'}, {}, 3]}");
    upstream_say_kinds(list, &out);
    assert_string_equal(buf_str(&out), "TFJobs, MPIJobs");
    json_decref(list);
    buf_done(&out);
}

/* The previous operator of a job that was taken over wrote before us; an operator that is restarted
 * finds the time of its own earlier write. */
static void who_else_writes_is_in_the_job(void **state)
{
    (void)state;
#define AT(manager, part, seconds)                                                                 \
    "{'manager': '" manager "', 'subresource': '" part "', 'time': '2026-01-01T00:00:" seconds "Z'}"
    static const struct {
        const char *entries, *other;
    } table[] = {
        {AT("muster", "status", "10") "," AT("manager", "status", "11"), "manager"},
        {AT("manager", "status", "12") "," AT("muster", "status", "11"), "manager"},
        {AT("manager", "status", "10") "," AT("muster", "status", "11"), NULL},
        {AT("manager", "status", "11") "," AT("muster", "status", "11"), NULL},
        {AT("muster", "status", "09") "," AT("manager", "status", "11"), NULL},
        {AT("muster", "status", "10") "," AT("kubectl-edit", "status", "11"), NULL},
        {AT("muster", "status", "10") "," AT("kube-scaler", "scale", "11"), NULL},
        {AT("manager", "status", "11"), NULL},
        {AT("muster", "status", "10") ", 3, {'manager': 4, 'subresource': 'status'}", NULL},
        {"", NULL},
    };
#undef AT
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text, "{'metadata': {'managedFields': [%s]}}",
                       table[i].entries);
        json_t *job = parse(text);
        const char *other = upstream_other_writer(job, timestamp_read("2026-01-01T00:00:10Z"));
        if (table[i].other ? !other || strcmp(other, table[i].other) != 0 : other != NULL) {
            fail_msg("row %zu: %s", i, other ? other : "nobody");
        }
        json_decref(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_works_on_our_jobs_is_known),
        cmocka_unit_test(one_that_is_scaled_down_runs_until_its_pods_are_gone),
        cmocka_unit_test(the_webhook_of_our_jobs_is_found_among_others),
        cmocka_unit_test(other_kinds_are_named_once),
        cmocka_unit_test(who_else_writes_is_in_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
