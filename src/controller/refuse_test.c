/* Checks which jobs a driver refuses before they begin. */
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "controller/internal.h"

#include <stdio.h>
#include <string.h>

#define NAME_50 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"

static json_t *make_job(const char *name, const char *container, const char *more)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': '%s', "
             "'namespace': 'default', 'uid': 'job-1'}, 'spec': {'pytorchReplicaSpecs': {'Worker': "
             "{'replicas': 2, 'template': {'spec': {'containers': [{'name': '%s', 'image': 'i'}]}"
             "}}}%s}}",
             name, container, more);
    return parse(text);
}

static void jobs_that_nobody_can_run(void **state)
{
    (void)state;
    static const struct {
        const char *name, *container, *more;
        enum control_target target;
        const char *says; /* NULL: the job may begin */
    } table[] = {
        {"a", "pytorch", "", CONTROL_TARGET_CLUSTER, NULL},
        {"a", "other", "", CONTROL_TARGET_CLUSTER, "must be called pytorch"},
        {NAME_50 NAME_50, "pytorch", "", CONTROL_TARGET_CLUSTER, "metadata.name: "},
        {NAME_50 "/aaaaa", "pytorch", "", CONTROL_TARGET_CLUSTER, "metadata.name: "},
        {"a", "pytorch", ", 'runPolicy': {'backoffLimit': -1}", CONTROL_TARGET_CLUSTER,
         "backoffLimit"},
        {"a", "other", ", 'runPolicy': {'managedBy': 'kueue.x-k8s.io/multikueue'}",
         CONTROL_TARGET_CLUSTER, NULL},
        {"a", "other", "", CONTROL_TARGET_MACHINE, NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *job = make_job(table[i].name, table[i].container, table[i].more);
        struct control_view view = {.job = job, .target = table[i].target};
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(driver_refuses(&view, &err), table[i].says != NULL);
        assert_true(!table[i].says || strstr(err.text, table[i].says));
        json_decref(job);
    }
}

/* A job that another operator has begun continues, whatever a newer check reports. */
static void a_job_that_has_begun_goes_on(void **state)
{
    (void)state;
    json_t *job = make_job("a", "other", ""),
           *pods = parse("[{'metadata': {'name': 'a-worker-0'}}]");
    struct muster_err err = MUSTER_ERR_INIT;
    struct control_view view = {.job = job, .pods = pods, .target = CONTROL_TARGET_CLUSTER};
    assert_false(driver_refuses(&view, &err));
    view.pods = NULL;
    assert_true(driver_refuses(&view, &err));
    json_object_set_new(job, "status", parse("{'startTime': '2026-01-01T00:00:00Z'}"));
    assert_false(driver_refuses(&view, &err));
    json_decref(job);
    json_decref(pods);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_that_nobody_can_run),
        cmocka_unit_test(a_job_that_has_begun_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
