/* The k-th allocation of a document fails, for every k: the result is an error or a whole document,
 * without a crash and (under ASan) without a leak. */
#include "base/file.h"
#include "base/testing/test.h"
#include "job/file/file.h"
#include "job/generate.h"
#include "job/job.h"

#include <stdio.h>
#include <stdlib.h>

enum { ALLOCATIONS_MAX = 20000 };

static long countdown; /* allocations until one fails; below 0: none fails */

static void *scarce_malloc(size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : malloc(size);
}

static char *read_sample(const char *name, size_t *ret_bytes)
{
    char path[4096];
    char *text = NULL;
    const char *source = getenv("MUSTER_SOURCE");
    snprintf(path, sizeof path, "%s/test/data/%s", source ? source : ".", name);
    assert_int_equal(file_read(path, 1 << 20, &text, ret_bytes, NULL), 0);
    return text;
}

/* Returns whether allocation k was reached. */
static bool read_with_failure(const char *text, size_t bytes, long k)
{
    struct job_file file = {0};
    struct job_problems problems;
    struct muster_err err = MUSTER_ERR_INIT;
    job_problems_init(&problems, 100);
    problems.advice = true;
    countdown = k;
    int r = job_file_read(text, bytes, &file, &problems, &err);
    struct job job = {0};
    if (r == 0 && problems.errors == 0 && file.object_count > 0 &&
        job_read(file.objects[file.object_count - 1], &job, &err) == 0) {
        job_done(&job);
    }
    bool reached = countdown < 0;
    countdown = -1;
    assert_true(r == 0 || r == MUSTER_ENOMEM);
    job_problems_done(&problems);
    job_file_done(&file);
    return reached;
}

static void a_file_is_read_or_refused(void **state)
{
    (void)state;
    static const char *const samples[] = {"jobs/several.yaml", "jobs/old-v1-mnist.yaml",
                                          "jobs/claims.yaml", "lint/duplicates.yaml"};
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        size_t bytes = 0;
        char *text = read_sample(samples[i], &bytes);
        long k = 0;
        while (k < ALLOCATIONS_MAX && read_with_failure(text, bytes, k)) {
            k++;
        }
        assert_in_range(k, 100, ALLOCATIONS_MAX - 1); /* k were needed; then none failed */
        free(text);
    }
}

static void a_command_becomes_a_job_or_an_error(void **state)
{
    (void)state;
    const char *const command[] = {"python3", "train.py", NULL};
    struct job_command options = {
        .ranks = 2,
        .command = command,
        .override = {.gpus = "1", .claims = &(struct job_claim){"c", "/c"}, .claim_count = 1}};
    int r = MUSTER_ENOMEM;
    for (long k = 0; r != 0 && k < ALLOCATIONS_MAX; k++) {
        json_t *job = NULL;
        countdown = k;
        r = job_from_command(&options, &job, NULL);
        countdown = -1;
        assert_true((r == 0) == (job != NULL));
        json_decref(job);
    }
    assert_int_equal(r, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_or_refused),
        cmocka_unit_test(a_command_becomes_a_job_or_an_error),
    };
    countdown = -1;
    json_set_alloc_funcs(scarce_malloc, free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
