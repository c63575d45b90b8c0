/* The walk over lists of pod templates, and the count of GPUs, which uses it. */
#include "job/items.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "job/gpus.h"

#include <string.h>

#define JOB(master, worker)                                                                        \
    "{'spec': {'pytorchReplicaSpecs': {'Master': {'template': {'spec': {'containers': [" master    \
    "]}}}, 'Worker': {'replicas': 3, 'template': {'spec': {'containers': [" worker "]}}}}}}"
#define GPUS(list, amount) "{'resources': {'" list "': {'nvidia.com/gpu': " amount "}}}"

struct seen {
    char paths[256];
    int count, stop_at;
};

static int see(void *context, const json_t *item, const char *role, const char *path)
{
    struct seen *seen = context;
    assert_true(json_is_object(item) && strstr(path, role));
    strncat(seen->paths, strstr(path, role), sizeof seen->paths - strlen(seen->paths) - 2);
    strncat(seen->paths, " ", 2);
    return ++seen->count == seen->stop_at ? -7 : 0;
}

static void each_item_comes_with_its_path(void **state)
{
    (void)state;
    muster_auto(doc) json_t *job = parse(JOB("{}, {}", "{}"));
    struct seen seen = {0};
    assert_int_equal(job_each_item(job, "containers", see, &seen), 0);
    assert_string_equal(seen.paths, "Master.template.spec.containers[0] "
                                    "Master.template.spec.containers[1] "
                                    "Worker.template.spec.containers[0] ");
    assert_int_equal(job_each_item(job, "volumes", see, &seen), 0);
    assert_int_equal(seen.count, 3);
}

static void a_negative_result_ends_the_walk(void **state)
{
    (void)state;
    muster_auto(doc) json_t *job = parse(JOB("{}, {}", "{}"));
    struct seen seen = {.stop_at = 2};
    assert_int_equal(job_each_item(job, "containers", see, &seen), -7);
    assert_int_equal(seen.count, 2);
}

static void gpus_are_counted_by_container_pod_and_job(void **state)
{
    (void)state;
    muster_auto(doc) json_t *job =
        parse(JOB(GPUS("limits", "1"), GPUS("requests", "'2'") ", " GPUS("limits", "'1'")));
    struct job_gpus gpus = job_gpus_of(job);
    assert_int_equal(gpus.most, 3);
    assert_int_equal(gpus.all, 10);
    assert_string_equal(gpus.role, "Worker");
}

static void what_is_no_whole_gpu_counts_as_none(void **state)
{
    (void)state;
    muster_auto(doc) json_t *job = parse(JOB(GPUS("limits", "'500m'"), GPUS("limits", "'two'")));
    struct job_gpus gpus = job_gpus_of(job);
    assert_int_equal(gpus.most, 0);
    assert_int_equal(gpus.all, 0);
    assert_null(gpus.role);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_comes_with_its_path),
        cmocka_unit_test(a_negative_result_ends_the_walk),
        cmocka_unit_test(gpus_are_counted_by_container_pod_and_job),
        cmocka_unit_test(what_is_no_whole_gpu_counts_as_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
