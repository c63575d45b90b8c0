/* A job ends with the last connection of its lease, with its holder's death, or when its holder
 * does not come back to a new controller. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "base/time/clock.h"
#include "daemon/object/jobs.h"
#include "daemon/object/leases.h"
#include "job/annotations.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
    uv_loop_t loop;
    struct store *store;
    struct leases *leases;
};

static void open_leases(struct world *w)
{
    assert_int_equal(leases_new(&w->loop, w->store, &w->leases, NULL), 0);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    assert_int_equal(store_open(":memory:", NULL, &w->store, NULL), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    leases_free(w->leases);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    store_close(w->store);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    free(w);
    return 0;
}

/* Adds a job with this lease (NULL: none), and a pod that runs. */
static void add_job(struct world *w, const char *name, const char *lease, bool finished)
{
    muster_auto(doc) json_t *stored = NULL;
    muster_auto(doc) json_t *job = json_pack(
        "{s:s, s:s, s:{s:s, s:s, s:{s:s*}}, s:{s:{}}, s:{s:[{s:s, s:s}]}}", "apiVersion",
        "kubeflow.org/v1", "kind", "PyTorchJob", "metadata", "name", name, "namespace", "default",
        "annotations", JOB_ANNOTATION_LEASE, lease, "spec", "pytorchReplicaSpecs", "status",
        "conditions", "type", finished ? "Succeeded" : "Running", "status", "True");
    assert_int_equal(store_create(w->store, "pytorchjobs", job, &stored, NULL), 0);
    muster_auto(doc) json_t *pod = json_pack(
        "{s:{s:s, s:s, s:[{s:s, s:s, s:s, s:b}]}, s:{s:s}}", "metadata", "name", name, "namespace",
        "default", "ownerReferences", "kind", "PyTorchJob", "name", name, "uid",
        doc_text(stored, "metadata.uid", ""), "controller", 1, "status", "phase", "Running");
    assert_int_equal(store_create(w->store, "pods", pod, NULL, NULL), 0);
}

static json_t *get(const struct world *w, const char *resource, const char *name)
{
    json_t *object = NULL;
    const struct store_key key = {resource, "default", name};
    return store_get(w->store, key, &object, NULL) == 0 ? object : NULL;
}

/* Checks the reason why the job must stop; "" if it must not. */
static void expect(const struct world *w, const char *name, const char *why)
{
    muster_auto(doc) json_t *job = get(w, "pytorchjobs", name);
    const char *note = jobs_annotation(job, JOB_ANNOTATION_STOP);
    assert_non_null(job);
    assert_string_equal(note ? note : "", why);
}

static bool has_live_pod(const struct world *w, const char *name)
{
    muster_auto(doc) json_t *pod = get(w, "pods", name);
    return pod && !doc_at(pod, "metadata.deletionTimestamp");
}

/* Returns the number of a process that has ended. */
static int dead_pid(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

static void the_last_connection_ends_its_jobs_and_no_others(void **state)
{
    struct world *w = *state;
    char lease[64];
    snprintf(lease, sizeof lease, "run-%d-a", (int)getpid());
    add_job(w, "mine", lease, false);
    add_job(w, "other", "run-1-b", false);
    add_job(w, "free", NULL, false);
    open_leases(w);
    leases_opened(w->leases, lease);
    leases_opened(w->leases, lease);
    leases_closed(w->leases, lease);
    assert_true(leases_is_open(w->leases, lease));
    expect(w, "mine", "");
    leases_closed(w->leases, lease);
    assert_false(leases_is_open(w->leases, lease));
    expect(w, "mine", "the muster run that started it went away");
    assert_false(has_live_pod(w, "mine"));
    expect(w, "other", "");
    expect(w, "free", "");
    assert_true(has_live_pod(w, "other"));
    leases_closed(w->leases, lease); /* a lease that is not open */
}

/* With cleanPodPolicy None, the pods that still run are deleted, and the job stays as it ended. */
static void of_a_finished_job_only_the_pods_go(void **state)
{
    struct world *w = *state;
    char lease[64];
    snprintf(lease, sizeof lease, "run-%d-a", (int)getpid());
    add_job(w, "done", lease, true);
    open_leases(w);
    leases_opened(w->leases, lease);
    leases_closed(w->leases, lease);
    expect(w, "done", "");
    assert_false(has_live_pod(w, "done"));
}

static void a_dead_holders_job_ends_at_once(void **state)
{
    struct world *w = *state;
    char dead[64];
    snprintf(dead, sizeof dead, "run-%d-a", dead_pid());
    add_job(w, "dead", dead, false);
    add_job(w, "odd", "no such form", false);
    open_leases(w);
    expect(w, "dead", "the muster run that started it is gone");
    expect(w, "odd", "");
}

static bool is_stopped(const struct world *w, const char *name)
{
    muster_auto(doc) json_t *job = get(w, "pytorchjobs", name);
    return jobs_annotation(job, JOB_ANNOTATION_STOP) != NULL;
}

static void who_does_not_come_back_is_not_waited_for(void **state)
{
    struct world *w = *state;
    char here[64], away[64];
    snprintf(here, sizeof here, "run-%d-a", (int)getpid());
    snprintf(away, sizeof away, "run-%d-b", (int)getpid());
    add_job(w, "here", here, false);
    add_job(w, "away", away, false);
    open_leases(w);
    leases_opened(w->leases, here);
    for (int64_t until = clock_ms() + test_limit_ms(); !is_stopped(w, "away");) {
        assert_true(clock_ms() < until);
        uv_run(&w->loop, UV_RUN_ONCE);
    }
    expect(w, "away", "the muster run that started it did not come back");
    expect(w, "here", "");
}

static void a_stop_is_written_once(void **state)
{
    struct world *w = *state;
    add_job(w, "j", NULL, false);
    muster_auto(doc) json_t *job = get(w, "pytorchjobs", "j");
    assert_int_equal(leases_stop_job(w->store, job, "first", NULL), 0);
    muster_auto(doc) json_t *stopped = get(w, "pytorchjobs", "j");
    assert_int_equal(leases_stop_job(w->store, stopped, "second", NULL), 0);
    expect(w, "j", "first");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_last_connection_ends_its_jobs_and_no_others),
        TEST(of_a_finished_job_only_the_pods_go),
        TEST(a_dead_holders_job_ends_at_once),
        TEST(who_does_not_come_back_is_not_waited_for),
        TEST(a_stop_is_written_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
