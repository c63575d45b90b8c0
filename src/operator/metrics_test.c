/* What is counted, and how it is printed. */
#include "operator/metrics.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#include <string.h>

static char *printed(const struct metrics *m)
{
    static char text[16384];
    struct buf out;
    buf_init(&out, sizeof text - 1);
    metrics_print(m, 3, &out);
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
    };
    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++) {
        metrics_did(&m, &effects[i], job, job);
    }
    const char *text = printed(&m);
    assert_non_null(strstr(text, "\ncreated_pods_total 2\n"));
    assert_non_null(strstr(text, "\ndeleted_pods_total 1\n"));
    assert_non_null(strstr(text, "\nsucceeded_service_creation_total 1\n"));
    json_decref(job);
    metrics_done(&m);
}

/* Namespaces come from outside: there is an end to them. */
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
        cmocka_unit_test(namespaces_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
