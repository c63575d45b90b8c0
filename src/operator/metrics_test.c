/* Which events are counted, and how the counts are printed. */
#include "operator/metrics.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#include <stdlib.h>
#include <string.h>

static char *printed(const struct metrics *m)
{
    static char text[16384];
    struct buf out;
    buf_init(&out, sizeof text - 1);
    static const struct kube_cluster_count requests[] = {{"GET", 200, 7}, {"POST", 0, 1}};
    struct metrics_others others = {
        .driver = {.queue_adds = 11,
                   .queue_retries = 2,
                   .queue_depth = 4,
                   .steps = 5,
                   .steps_max = 16,
                   .live_jobs = 3},
        .requests = requests,
        .request_count = 2,
        .host = "10.0.0.1:443",
    };
    static const double limits[] = {0.25, 1};
    static struct kube_cluster_time times[] = {{.method = "GET"}};
    struct histogram waited;
    histogram_init(&times[0].took, limits, 2);
    histogram_init(&waited, limits, 2);
    histogram_add(&times[0].took, 300);
    histogram_add(&waited, 250);
    others.times = times;
    others.time_count = 1;
    others.driver.queue_waited = others.driver.queue_worked = &waited;
    metrics_print(m, &others, &out);
    assert_false(buf_failed(&out));
    memcpy(text, buf_str(&out), out.used + 1);
    buf_done(&out);
    return text;
}

static json_t *job_with(const char *conditions)
{
    json_t *job = json_pack("{s:{s:s, s:s}, s:{s:[]}}", "metadata", "namespace", "a", "name", "b",
                            "status", "conditions");
    char words[128];
    (void)snprintf(words, sizeof words, "%s", conditions);
    for (char *rest = words, *word; (word = strtok_r(rest, " ", &rest));) {
        json_array_append_new(json_object_get(json_object_get(job, "status"), "conditions"),
                              json_pack("{s:s, s:s}", "type", word, "status", "True"));
    }
    return job;
}

static void write_status(struct metrics *m, const char *before, const char *after)
{
    const struct control_effect status = {.verb = CONTROL_UPDATE_STATUS};
    json_t *was = job_with(before), *is = job_with(after);
    metrics_did(m, &status, was, is);
    json_decref(was);
    json_decref(is);
}

static void a_transition_counts_once(void **state)
{
    (void)state;
    struct metrics m = {0};
    write_status(&m, "", "Created");
    write_status(&m, "Created", "Created Running");
    write_status(&m, "Created Running", "Created Restarting");
    write_status(&m, "Created Restarting", "Created Running");
    write_status(&m, "Created Running", "Created Failed");
    write_status(&m, "Created Failed", "Created Failed");
    metrics_gone(&m, "a/b");
    metrics_gone(&m, "other/b");
    const char *text = printed(&m);
    static const char *const lines[] = {
        "training_operator_jobs_created_total{job_namespace=\"a\",framework=\"pytorch\"} 1\n",
        "training_operator_jobs_restarted_total{job_namespace=\"a\",framework=\"pytorch\"} 1\n",
        "training_operator_jobs_failed_total{job_namespace=\"a\",framework=\"pytorch\"} 1\n",
        "training_operator_jobs_deleted_total{job_namespace=\"a\",framework=\"pytorch\"} 1\n",
        "training_operator_jobs_deleted_total{job_namespace=\"other\",framework=\"pytorch\"} 1\n",
        "muster_operator_live_jobs 3\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_non_null(strstr(text, lines[i]));
    }
    assert_null(strstr(text, "successful_total{"));
    metrics_done(&m);
}

static void pods_and_services_are_counted(void **state)
{
    (void)state;
    struct metrics m = {0};
    json_t *job = job_with("Created");
    const struct control_effect effects[] = {
        {.verb = CONTROL_CREATE, .resource = CONTROL_POD},
        {.verb = CONTROL_CREATE, .resource = CONTROL_POD},
        {.verb = CONTROL_DELETE, .resource = CONTROL_POD},
        {.verb = CONTROL_CREATE, .resource = CONTROL_SERVICE},
        {.verb = CONTROL_CREATE, .resource = CONTROL_VOLCANO_GROUP},
        {.verb = CONTROL_CREATE, .resource = CONTROL_PLUGINS_GROUP},
        {.verb = CONTROL_DELETE, .resource = CONTROL_PLUGINS_GROUP},
    };
    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++) {
        metrics_did(&m, &effects[i], job, job);
    }
    const char *text = printed(&m);
    assert_non_null(strstr(text, "\ncreated_pods_total 2\n"));
    assert_non_null(strstr(text, "\ndeleted_pods_total 1\n"));
    assert_non_null(strstr(text, "\nsucceeded_service_creation_total 1\n"));
    assert_non_null(strstr(text, "\ncreated_pod_groups_total 2\n"));
    assert_non_null(strstr(text, "\ndeleted_pod_groups_total 1\n"));
    json_decref(job);
    metrics_done(&m);
}

/* Failures that the status had before are not counted again; a restart in place is a failure. */
static void failures_of_pods_are_counted(void **state)
{
    (void)state;
    static const int failures[] = {0, 1, 1, 3};
    const struct control_effect status = {.verb = CONTROL_UPDATE_STATUS};
    struct metrics m = {0};
    for (size_t i = 1; i < sizeof failures / sizeof failures[0]; i++) {
        json_t *was = job_with("Created"), *is = job_with("Created");
        doc_set_int(was, "status.counters.failures", failures[i - 1]);
        doc_set_int(is, "status.counters.failures", failures[i]);
        metrics_did(&m, &status, was, is);
        json_decref(was);
        json_decref(is);
    }
    const struct control_effect effects[] = {{.verb = CONTROL_CREATE, .resource = CONTROL_POD},
                                             {.verb = CONTROL_CREATE, .resource = CONTROL_SERVICE}};
    metrics_refused(&m, &effects[0]);
    metrics_refused(&m, &effects[1]);
    const char *text = printed(&m);
    assert_non_null(strstr(text, "\nfailed_pods_total 3\n"));
    assert_non_null(strstr(text, "\nfailed_service_creation_total 1\n"));
    metrics_done(&m);
}

static void steps_queue_and_requests(void **state)
{
    (void)state;
    struct metrics m = {0};
    metrics_stepped(&m, DRIVER_DONE, 5);
    metrics_stepped(&m, DRIVER_DONE, 6);
    metrics_stepped(&m, DRIVER_AGAIN, 100);
    metrics_stepped(&m, DRIVER_FAILED, 100000);
    const char *text = printed(&m);
#define TIMES "\ncontroller_runtime_reconcile_time_seconds"
#define JOBS "controller=\"pytorchjob-controller\""
    static const char *const lines[] = {
        TIMES "_bucket{" JOBS ",le=\"0.005\"} 1\n",
        TIMES "_bucket{" JOBS ",le=\"0.01\"} 2\n",
        TIMES "_bucket{" JOBS ",le=\"0.05\"} 2\n",
        TIMES "_bucket{" JOBS ",le=\"0.1\"} 3\n",
        TIMES "_bucket{" JOBS ",le=\"60\"} 3\n",
        TIMES "_bucket{" JOBS ",le=\"+Inf\"} 4\n",
        TIMES "_count{" JOBS "} 4\n",
        "\ncontroller_runtime_reconcile_total{" JOBS ",result=\"success\"} 2\n",
        "\ncontroller_runtime_reconcile_total{" JOBS ",result=\"requeue\"} 1\n",
        "\ncontroller_runtime_reconcile_errors_total{" JOBS "} 1\n",
        "\ncontroller_runtime_active_workers{" JOBS "} 5\n",
        "\nworkqueue_depth{" JOBS ",name=\"pytorchjob-controller\"} 4\n",
        "\nworkqueue_adds_total{" JOBS ",name=\"pytorchjob-controller\"} 11\n",
        "\nworkqueue_retries_total{" JOBS ",name=\"pytorchjob-controller\"} 2\n",
        "\nworkqueue_queue_duration_seconds_bucket{" JOBS
        ",name=\"pytorchjob-controller\",le=\"0.25\"} 1\n",
        "\nworkqueue_work_duration_seconds_count{" JOBS ",name=\"pytorchjob-controller\"} 1\n",
        "\nrest_client_request_duration_seconds_bucket{verb=\"GET\",host=\"10.0.0.1:443\","
        "le=\"0.25\"} 0\n",
        "\nrest_client_request_duration_seconds_count{verb=\"GET\",host=\"10.0.0.1:443\"} 1\n",
        "\nrest_client_requests_total{code=\"200\",host=\"10.0.0.1:443\",method=\"GET\"} 7\n",
        "\nrest_client_requests_total{code=\"<error>\",host=\"10.0.0.1:443\",method=\"POST\"} 1\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_non_null(strstr(text, lines[i]));
    }
    const char *sum = strstr(text, TIMES "_sum{" JOBS "} ");
    assert_non_null(sum);
    assert_true(strtod(strchr(sum, '}') + 1, NULL) == 100.111);
    metrics_done(&m);
}

/* Namespaces come from outside: their number is limited. */
static void namespaces_have_a_limit(void **state)
{
    (void)state;
    struct metrics m = {0};
    char key[32];
    for (int i = 0; i < METRICS_NAMESPACES_MAX + 10; i++) {
        (void)snprintf(key, sizeof key, "n%d/a", i);
        metrics_gone(&m, key);
    }
    assert_int_equal(m.namespace_count, METRICS_NAMESPACES_MAX);
    metrics_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transition_counts_once),
        cmocka_unit_test(pods_and_services_are_counted),
        cmocka_unit_test(failures_of_pods_are_counted),
        cmocka_unit_test(steps_queue_and_requests),
        cmocka_unit_test(namespaces_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
