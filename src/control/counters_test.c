/* Checks the counters in the status: they have one entry for each replica, and count each failure
 * once, however often it is seen. */
#include "control/counters.h"
#include "control/scene.h"

#include <string.h>

static void fail_pod(json_t *pod, const char *uid, const char *version)
{
    doc_set_text(pod, "metadata.uid", uid);
    doc_set_text(pod, "metadata.resourceVersion", version);
    doc_set_text(pod, "status.phase", "Failed");
    set_ended(pod, 137, "Error", "2026-01-01T00:00:00Z");
}

static int64_t failures(const struct scene *s)
{
    return doc_int(s->job, "status.counters.failures", 0);
}

static size_t entries(const struct scene *s)
{
    return json_object_size(doc_at(s->job, "status.counters.replicas"));
}

static void one_write_tells_all(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "ExitCode", "{'activeDeadlineSeconds': 60}"));
    s.now_ms = 7;
    step(&s);
    fail_pod(add_pod(&s, "Master", 0, "Failed"), "one", "5");
    s.now_s = 1;
    step(&s);
    assert_int_equal(count(&s, "status "), 1);
    assert_document(doc_at(s.job, "status.counters"),
                    "{'startTimeMs': 1767225600007, 'failures': 1, 'replicas': {'master-0': "
                    "{'uid': 'one', 'version': '5', 'failures': 1, 'remakes': 1, 'at': "
                    "1767225600000, 'remade': true}}}");
    step(&s);
    assert_null(s.status);
    assert_int_equal(count(&s, "delete pod"), 1);
    close_scene(&s);
}

/* 2,000 entries need more room than an annotation has (256 KiB). */
static void two_thousand_replicas_may_fail(void **state)
{
    (void)state;
    enum { REPLICAS = 2000 };
    struct scene s;
    open_scene(&s, make_job(false, REPLICAS, "OnFailure", "{'backoffLimit': 100000}"));
    for (int i = 0; i < REPLICAS; i++) {
        char uid[64];
        snprintf(uid, sizeof uid, "00000000-0000-0000-0000-%012d", i);
        fail_pod(add_pod(&s, "Worker", i, "Failed"), uid, "123456789");
    }
    s.now_s = 1;
    struct control_effects fx = effects_of(&s);
    char *text = NULL;
    for (size_t i = 0; i < fx.count && !text; i++) {
        text = fx.list[i].verb == CONTROL_UPDATE_STATUS ? doc_print(fx.list[i].object) : NULL;
    }
    assert_non_null(text);
    assert_in_range(strlen(text), 256 << 10, 512 << 10); /* etcd accepts 1.5 MiB */
    free(text);
    control_effects_done(&fx);
    step(&s);
    assert_int_equal(failures(&s), REPLICAS);
    assert_int_equal(entries(&s), REPLICAS);
    step(&s);
    assert_int_equal(failures(&s), REPLICAS);
    close_scene(&s);
}

static void replicas_that_are_no_more_are_forgotten(void **state)
{
    (void)state;
    enum { REPLICAS = 200, SPARE = 64 };
    struct scene s;
    open_scene(&s, make_job(false, REPLICAS, "OnFailure", "{'backoffLimit': 100000}"));
    for (int i = 0; i < REPLICAS; i++) {
        char uid[64];
        snprintf(uid, sizeof uid, "uid-%d", i);
        fail_pod(add_pod(&s, "Worker", i, "Failed"), uid, "1");
    }
    step(&s);
    assert_int_equal(entries(&s), REPLICAS);
    doc_set_int(s.job, "spec.pytorchReplicaSpecs.Worker.replicas", 1);
    fail_pod(json_array_get(s.pods, 0), "again", "2");
    step(&s);
    assert_int_equal(entries(&s), 1 + SPARE);
    assert_non_null(doc_at(s.job, "status.counters.replicas.worker-0"));
    close_scene(&s);
}

static void there_are_at_most_so_many(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(false, 100000, "OnFailure", "{'backoffLimit': 100000}"));
    json_t *replicas = json_object();
    for (int i = 0; i < COUNTERS_ENTRIES_MAX; i++) {
        char slot[32];
        snprintf(slot, sizeof slot, "worker-%d", i);
        json_object_set_new(replicas, slot, json_pack("{s:s}", "uid", "old"));
    }
    doc_set(s.job, "status.counters.replicas", replicas);
    fail_pod(add_pod(&s, "Worker", 3, "Failed"), "known", "2");
    fail_pod(add_pod(&s, "Worker", COUNTERS_ENTRIES_MAX, "Failed"), "surplus", "2");
    step(&s);
    assert_int_equal(entries(&s), COUNTERS_ENTRIES_MAX);
    assert_int_equal(failures(&s), 1);
    close_scene(&s);
}

/* A new leader listed the pods before it read the job, in which an earlier leader had already
 * counted them. */
static void an_old_view_of_the_pods_is_not_counted_again(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "ExitCode", "{}"));
    json_t *pod = add_pod(&s, "Master", 0, "Failed");
    static const struct {
        const char *uid, *version;
        int64_t failures;
    } table[] = {
        {"one", "9", 1}, {"two", "10", 2}, {"one", "9", 2}, {"two", "12", 2}, {"three", "11", 3}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        fail_pod(pod, table[i].uid, table[i].version);
        step(&s);
        assert_int_equal(failures(&s), table[i].failures);
    }
    assert_int_equal(doc_int(s.job, "status.counters.replicas.master-0.remakes", 0), 3);
    close_scene(&s);
}

/* Restarts in place are seen first, then the pod's end: each failure is counted once, and the pod
 * is remade once. */
static void a_pod_is_counted_as_it_goes_on(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, -1, "OnFailure", "{'backoffLimit': 9}"));
    json_t *pod = add_pod(&s, "Master", 0, "Running");
    doc_set(pod, "status.containerStatuses", parse("[{'name': 'pytorch', 'restartCount': 2}]"));
    step(&s);
    assert_int_equal(failures(&s), 2);
    assert_null(doc_at(s.job, "status.counters.replicas.master-0.remakes"));
    doc_set_text(pod, "status.phase", "Failed");
    step(&s);
    assert_int_equal(failures(&s), 3);
    assert_int_equal(doc_int(s.job, "status.counters.replicas.master-0.remakes", 0), 1);
    step(&s);
    assert_null(s.status);
    close_scene(&s);
}

/* {"uid", "count", "at"} and {uid: failures} are the forms of earlier versions. */
static void annotations_of_an_earlier_version_are_read_on(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, make_job(true, 1, "ExitCode", "{}"));
    json_object_update_new(
        doc_at(s.job, "metadata.annotations"),
        json_pack("{s:s, s:s, s:s, s:s}", "muster.dev/failures", "7", "muster.dev/started",
                  "1767225600123", "muster.dev/counted",
                  "{\"job\":\"job-1\",\"gone\":4,\"here\":1,\"there\":2}", "muster.dev/restarts",
                  "{\"master-0\":{\"uid\":\"gone\",\"count\":3,\"at\":1767225590000},"
                  "\"worker-0\":{\"uid\":\"there\",\"count\":2,\"at\":1767225599000}}"));
    fail_pod(add_pod(&s, "Master", 0, "Failed"), "here", "8");  /* counted, but not remade yet */
    fail_pod(add_pod(&s, "Worker", 0, "Failed"), "there", "9"); /* counted and remade */
    doc_set(json_array_get(s.pods, 1), "status.containerStatuses",
            parse("[{'name': 'pytorch', 'restartCount': 1, 'state': {'terminated': {'exitCode': "
                  "137, 'finishedAt': '2026-01-01T00:00:00Z'}}}]"));
    s.now_s = 1;
    step(&s);
    assert_document(
        doc_at(s.job, "status.counters"),
        "{'failures': 7, 'startTimeMs': 1767225600123, 'replicas': {'master-0': {'uid': 'here', "
        "'version': '8', 'failures': 1, 'remakes': 4, 'at': 1767225600000, 'remade': true}, "
        "'worker-0': {'uid': 'there', 'failures': 2, 'remakes': 2, 'at': 1767225599000, "
        "'remade': true}}}");
    step(&s); /* the annotations are not read any more */
    assert_null(s.status);
    assert_int_equal(failures(&s), 7);
    close_scene(&s);
}

static void a_damaged_status_does_no_harm(void **state)
{
    (void)state;
    static const char *const table[] = {
        "{'failures': -5, 'replicas': []}",
        "{'failures': 9223372036854775807, 'replicas': {'master-0': {'uid': 3, 'failures': "
        "-1, 'at': 9223372036854775807, 'remakes': 9223372036854775807}}}",
        "{'replicas': {'master-0': 7, 'worker-99999999999999999999': {}, 'other': {}}}",
        "{'startTimeMs': 'x', 'jobRestarts': -1, 'firstRestart': 3}",
        "[]",
        "3",
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_scene(&s, make_job(true, -1, "ExitCode", "{}"));
        char text[512];
        snprintf(text, sizeof text, "{'x': %s}", table[i]);
        json_t *doc = parse(text);
        doc_set(s.job, "status.counters", json_incref(json_object_get(doc, "x")));
        json_decref(doc);
        fail_pod(add_pod(&s, "Master", 0, "Failed"), "one", "5");
        step(&s);
        assert_int_equal(count(&s, "delete pod"), 1);
        assert_in_range(failures(&s), 1, INT32_MAX);
        step(&s);
        assert_null(s.status);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_write_tells_all),
        cmocka_unit_test(two_thousand_replicas_may_fail),
        cmocka_unit_test(replicas_that_are_no_more_are_forgotten),
        cmocka_unit_test(there_are_at_most_so_many),
        cmocka_unit_test(an_old_view_of_the_pods_is_not_counted_again),
        cmocka_unit_test(a_pod_is_counted_as_it_goes_on),
        cmocka_unit_test(annotations_of_an_earlier_version_are_read_on),
        cmocka_unit_test(a_damaged_status_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
