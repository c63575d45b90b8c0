/* Checks what is kept of the objects that watches have shown: it is found by owner, never becomes
 * older, and is removed if a listing does not show it. */
#include "base/testing/test_doc.h"
#include "controller/cache.h"

#include <stdio.h>

static json_t *make(const char *kind, const char *name, const char *uid, const char *version)
{
    return json_pack("{s:s, s:{s:s, s:s, s:s, s:s, s:[{s:s, s:s, s:s, s:b}]}, s:{s:s}}", "kind",
                     kind, "metadata", "name", name, "namespace", "n", "uid", uid,
                     "resourceVersion", version, "ownerReferences", "kind", "PyTorchJob", "name",
                     "j", "uid", "job", "controller", 1, "status", "phase", "Running");
}

static struct cache_change put(struct cache *c, enum control_resource resource, json_t *object)
{
    struct cache_change change;
    assert_int_equal(cache_put(c, resource, object, &change), 0);
    change.name = change.uid = change.version = NULL;
    json_decref(object);
    return change;
}

static void expect(const struct cache *c, enum control_resource resource, const char *owner,
                   const char *versions)
{
    char text[64] = "";
    json_t *list = cache_list(c, resource, owner);
    size_t index;
    json_t *each;
    json_array_foreach (list, index, each) {
        strncat(text, doc_text(each, "metadata.resourceVersion", "?"), 8);
    }
    assert_string_equal(text, versions);
    json_decref(list);
}

static void pods_are_found_by_their_job(void **state)
{
    (void)state;
    struct cache c;
    cache_init(&c, 10);
    struct cache_change change = put(&c, CONTROL_POD, make("Pod", "j-worker-0", "p", "5"));
    assert_string_equal(change.job, "n/j");
    put(&c, CONTROL_POD, make("Pod", "j-worker-1", "q", "6"));
    put(&c, CONTROL_SERVICE, make("Service", "j-worker-0", "s", "7"));
    expect(&c, CONTROL_POD, "job", "56");
    expect(&c, CONTROL_SERVICE, "job", "7");
    expect(&c, CONTROL_POD, "other", "");
    assert_true(cache_has(&c, CONTROL_POD, "n", "j-worker-0", "p"));
    assert_false(cache_has(&c, CONTROL_POD, "n", "j-worker-0", "q"));
    json_t *last = make("Pod", "j-worker-0", "p", "8");
    cache_remove(&c, CONTROL_POD, last, &change);
    json_decref(last);
    assert_true(change.changed && change.gone);
    expect(&c, CONTROL_POD, "job", "6");
    cache_done(&c);
}

static void what_is_nobodys_is_not_kept(void **state)
{
    (void)state;
    struct cache c;
    cache_init(&c, 10);
    json_t *free_pod = parse("{'metadata': {'name': 'p', 'namespace': 'n', 'uid': 'u'}}");
    assert_false(put(&c, CONTROL_POD, free_pod).changed);
    assert_int_equal(c.bytes, 0);
    put(&c, CONTROL_POD, make("Pod", "p", "u", "1"));
    assert_true(c.bytes > 0);
    json_t *let_go = parse("{'metadata': {'name': 'p', 'namespace': 'n', 'uid': 'u'}}");
    struct cache_change change = put(&c, CONTROL_POD, let_go);
    assert_string_equal(change.job, "n/j");
    assert_int_equal(c.bytes, 0);
    cache_done(&c);
}

static void an_older_state_is_ignored(void **state)
{
    (void)state;
    struct cache c;
    cache_init(&c, 10);
    put(&c, CONTROL_POD, make("Pod", "p", "u", "10"));
    put(&c, CONTROL_POD, make("Pod", "p", "u", "9"));
    expect(&c, CONTROL_POD, "job", "10");
    put(&c, CONTROL_POD, make("Pod", "p", "u2", "8")); /* another object with this name */
    expect(&c, CONTROL_POD, "job", "8");
    cache_begin(&c, CONTROL_POD); /* a listing may show an older state: the server was restored */
    put(&c, CONTROL_POD, make("Pod", "p", "u2", "7"));
    expect(&c, CONTROL_POD, "job", "7");
    cache_done(&c);
}

static void note_gone(void *arg, const char *job)
{
    assert_string_equal(job, "n/j");
    ++*(int *)arg;
}

static void a_listing_takes_out_what_it_does_not_show(void **state)
{
    (void)state;
    struct cache c;
    int gone = 0;
    cache_init(&c, 10);
    put(&c, CONTROL_POD, make("Pod", "a", "1", "1"));
    put(&c, CONTROL_POD, make("Pod", "b", "2", "2"));
    put(&c, CONTROL_SERVICE, make("Service", "a", "3", "3"));
    cache_begin(&c, CONTROL_POD);
    put(&c, CONTROL_POD, make("Pod", "b", "2", "2"));
    cache_synced(&c, CONTROL_POD, note_gone, &gone);
    assert_int_equal(gone, 1);
    expect(&c, CONTROL_POD, "job", "2");
    expect(&c, CONTROL_SERVICE, "job", "3");
    assert_false(cache_is_synced(&c));
    for (enum control_resource i = 0; i < CONTROL_RESOURCES; i++) {
        cache_begin(&c, i);
        cache_synced(&c, i, note_gone, &gone);
    }
    assert_true(cache_is_synced(&c));
    assert_int_equal(c.bytes, 0);
    cache_done(&c);
}

/* The job is packed during a listing that does not show it, and is removed at the end of the
 * listing. */
static void a_finished_job_becomes_a_key(void **state)
{
    (void)state;
    struct cache c;
    struct cache_job job;
    int gone = 0;
    cache_init(&c, 10);
    json_t *running = make("PyTorchJob", "j", "job", "1");
    json_t *over = make("PyTorchJob", "j", "job", "2");
    doc_set(over, "status.conditions", parse("[{'type': 'Succeeded', 'status': 'True'}]"));
    json_t *touched = json_deep_copy(over);
    doc_set_text(touched, "metadata.resourceVersion", "3");
    doc_set_text(touched, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z");
    put(&c, CONTROL_JOB, running);
    cache_pack_job(&c, "n/j"); /* not finished yet */
    json_t *whole = cache_job_object(&c, "n/j");
    assert_string_equal(doc_text(whole, "status.phase", ""), "Running");
    json_decref(whole);
    assert_int_equal(cache_live_jobs(&c), 1);
    put(&c, CONTROL_JOB, over);
    size_t before = c.bytes;
    cache_pack_job(&c, "n/j");
    assert_true(c.bytes < before);
    assert_null(cache_job_object(&c, "n/j"));
    assert_true(cache_job(&c, "n/j", &job) && job.packed && job.finished);
    assert_string_equal(job.version, "2");
    assert_int_equal(cache_live_jobs(&c), 0);
    put(&c, CONTROL_JOB, touched);
    assert_true(cache_job(&c, "n/j", &job) && !job.packed);
    cache_begin(&c, CONTROL_JOB);
    cache_pack_job(&c, "n/j");
    assert_true(cache_job(&c, "n/j", &job) && job.packed);
    assert_false(cache_has(&c, CONTROL_JOB, "n", "j", "job")); /* it is being deleted */
    cache_synced(&c, CONTROL_JOB, note_gone, &gone);
    assert_int_equal(gone, 1);
    assert_false(cache_job(&c, "n/j", &job));
    cache_done(&c);
}

/* The pod has all that the API server returns, and little of it is kept: 10,000 pods take a few
 * megabytes. */
static void a_pod_is_small(void **state)
{
    (void)state;
    struct cache c;
    struct cache_change change;
    cache_init(&c, 1);
    json_t *pod =
        make("Pod", "mnist-worker-1234", "0a1b2c3d-0000-1111-2222-333344445555", "123456789");
    doc_set(pod, "status",
            parse("{'phase': 'Running', 'hostIP': '10.0.0.1', 'containerStatuses': [{'name': "
                  "'pytorch', 'restartCount': 0, 'state': {'running': {'startedAt': 't'}}}]}"));
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "spec.e%d", i);
        doc_set_text(pod, name, "an environment variable that nobody reads here");
    }
    assert_int_equal(cache_put(&c, CONTROL_POD, pod, &change), 0);
    assert_true(c.bytes < 900);
    doc_set_text(pod, "metadata.name", "another");
    assert_int_equal(cache_put(&c, CONTROL_POD, pod, &change), MUSTER_ETOOBIG);
    json_decref(pod);
    cache_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_found_by_their_job),
        cmocka_unit_test(what_is_nobodys_is_not_kept),
        cmocka_unit_test(an_older_state_is_ignored),
        cmocka_unit_test(a_listing_takes_out_what_it_does_not_show),
        cmocka_unit_test(a_finished_job_becomes_a_key),
        cmocka_unit_test(a_pod_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
