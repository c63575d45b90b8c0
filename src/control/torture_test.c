/* The k-th allocation of a step fails, for every k: the step returns an error, or does exactly what
 * it would have done, and never only a part of it. (ASan also checks for leaks.) */
#include "control/fixture.h"
#include "job/annotations.h"

#include <stdlib.h>

enum { ALLOCATIONS_MAX = 20000 };

static long countdown; /* allocations until one fails; below 0: none fails */

static void *scarce_malloc(size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : malloc(size);
}

static void print(const struct control_effects *fx, struct buf *out)
{
    control_trace(fx, out);
    for (size_t i = 0; i < fx->count; i++) {
        char *text = fx->list[i].object ? doc_print(fx->list[i].object) : NULL;
        buf_format(out, "%s\n", text ? text : "");
        free(text);
    }
}

/* Returns whether allocation k was reached. */
static bool step_with_failure(const struct control_view *view, long k, const char *whole)
{
    struct control_effects fx;
    struct muster_err err = MUSTER_ERR_INIT;
    countdown = k;
    int r = control_reconcile(view, &fx, &err);
    bool reached = countdown < 0;
    countdown = -1;
    if (r != 0) {
        assert_int_equal(r, MUSTER_ENOMEM);
        return reached;
    }
    struct buf got;
    buf_init(&got, 1 << 20);
    print(&fx, &got);
    assert_string_equal(buf_str(&got), whole);
    buf_done(&got);
    control_effects_done(&fx);
    return reached;
}

static void torture(const struct control_view *view)
{
    struct control_effects fx;
    struct buf whole;
    buf_init(&whole, 1 << 20);
    assert_int_equal(control_reconcile(view, &fx, NULL), 0);
    print(&fx, &whole);
    control_effects_done(&fx);
    json_set_alloc_funcs(scarce_malloc, free);
    long k = 0;
    while (k < ALLOCATIONS_MAX && step_with_failure(view, k, buf_str(&whole))) {
        k++;
    }
    json_set_alloc_funcs(malloc, free);
    assert_in_range(k, 10, ALLOCATIONS_MAX - 1); /* k allocations; in the last run none fails */
    buf_done(&whole);
}

static void the_first_step_is_whole_or_refused(void **state)
{
    (void)state;
    json_t *job = make_job(true, 1, "OnFailure", "{'activeDeadlineSeconds': 60}");
    doc_set(job, "spec.pytorchReplicaSpecs.Worker.volumeClaimTemplates",
            parse("[{'metadata': {'name': 'out'}, 'spec': {}}]"));
    const struct control_view view = {.job = job, .now_unix_ms = 1767225600000};
    torture(&view);
    json_decref(job);
}

static void a_step_with_failed_pods_is_whole_or_refused(void **state)
{
    (void)state;
    static const char *const policies[] = {"ExitCode", "Never"};
    for (size_t i = 0; i < 2; i++) {
        json_t *job = make_job(true, -1, policies[i], "{'backoffLimit': 3}");
        json_t *pods = parse(
            "[{'metadata': {'name': 'mnist-master-0', 'uid': 'p', 'ownerReferences': [{'controller': "
            "true, 'uid': 'job-1'}]}, 'status': {'phase': 'Failed', 'containerStatuses': [{'name': "
            "'pytorch', 'restartCount': 0, 'state': {'terminated': {'exitCode': 137, 'reason': "
            "'Error', 'message': 'm', 'finishedAt': '2026-01-01T00:00:00Z'}}}]}}]");
        const struct control_view view = {.job = job, .pods = pods, .now_unix_ms = 1767225601000};
        torture(&view);
        json_decref(pods);
        json_decref(job);
    }
}

/* If counts cannot be read because memory is short, they must not count as zero. */
static void counts_of_earlier_failures_are_whole_or_refused(void **state)
{
    (void)state;
    json_t *job = make_job(true, -1, "OnFailure", "{'backoffLimit': 3}");
    json_t *notes = doc_at(job, "metadata.annotations");
    json_object_set_new(notes, JOB_ANNOTATION_FAILURES, json_string("2"));
    json_object_set_new(notes, JOB_ANNOTATION_COUNTED,
                        json_string("{\"job\": \"job-1\", \"p\": 1, \"q\": 1}"));
    json_object_set_new(notes, JOB_ANNOTATION_RESTARTS,
                        json_string("{\"master-0\": {\"uid\": \"q\", \"count\": 2, \"at\": 9}}"));
    json_t *pods = parse("[{'metadata': {'name': 'mnist-master-0', 'uid': 'p', 'ownerReferences': "
                         "[{'controller': true, 'uid': 'job-1'}]}, 'status': {'phase': 'Failed', "
                         "'containerStatuses': [{'name': 'pytorch', 'restartCount': 0, 'state': "
                         "{'terminated': {'exitCode': 1, 'finishedAt': "
                         "'2026-01-01T00:00:00Z'}}}]}}]");
    const struct control_view view = {.job = job, .pods = pods, .now_unix_ms = 1767225601000};
    torture(&view);
    json_decref(pods);
    json_decref(job);
}

/* Reading the attempt of a pod needs no memory. */
static void a_restart_of_all_ranks_is_whole_or_refused(void **state)
{
    (void)state;
    static const char *const attempts[] = {"0", "1"}; /* the pod's: an earlier one, or the job's */
    for (size_t i = 0; i < 2; i++) {
        json_t *job = make_job(true, -1, "Never", "{}");
        json_t *notes = doc_at(job, "metadata.annotations");
        json_object_set_new(notes, JOB_ANNOTATION_MAX_RESTARTS, json_string("3"));
        json_object_set_new(notes, JOB_ANNOTATION_JOB_RESTARTS, json_string("1 job-1"));
        json_object_set_new(notes, JOB_ANNOTATION_FIRST_RESTART, json_string("first"));
        json_t *pods =
            parse("[{'metadata': {'name': 'mnist-master-0', 'uid': 'p', 'annotations': {}, "
                  "'ownerReferences': [{'controller': true, 'uid': 'job-1'}]}, 'status': {'phase': "
                  "'Failed', 'containerStatuses': [{'name': 'pytorch', 'restartCount': 0, 'state': "
                  "{'terminated': {'exitCode': 1, 'finishedAt': '2026-01-01T00:00:00Z'}}}]}}]");
        json_object_set_new(doc_at(json_array_get(pods, 0), "metadata.annotations"),
                            JOB_ANNOTATION_ATTEMPT, json_string(attempts[i]));
        const struct control_view view = {.job = job, .pods = pods, .now_unix_ms = 1767225601000};
        torture(&view);
        const struct control_view later = {.job = job, .now_unix_ms = 1767225601000};
        torture(&later);
        json_decref(pods);
        json_decref(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_step_is_whole_or_refused),
        cmocka_unit_test(a_step_with_failed_pods_is_whole_or_refused),
        cmocka_unit_test(counts_of_earlier_failures_are_whole_or_refused),
        cmocka_unit_test(a_restart_of_all_ranks_is_whole_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
