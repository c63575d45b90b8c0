/* The routes that the daemon adds to the API: which paths and methods exist, and the requests to
 * keep running and to leave. */
#include "api/fixture.h"
#include "base/file.h"
#include "base/testing/test_doc.h"
#include "daemon/history/paths.h"
#include "daemon/object/jobs.h"
#include "daemon/route/routes.h"
#include "job/annotations.h"
#include "job/problem.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#define ENVIRONMENT "environments/0123456789abcdef0123456789abcdef"

/* A disk whose fsync waits until it is released. */
static struct {
    bool held;
    pthread_t loop_thread;
    bool on_loop; /* the loop's thread has called fsync */
    sem_t released;
} disk;

/* Replaces libc's function. */
int fsync(int fd)
{
    (void)fd;
    if (disk.held && pthread_equal(pthread_self(), disk.loop_thread)) {
        disk.on_loop = true;
    } else if (disk.held) {
        while (sem_wait(&disk.released) < 0) {
        }
    }
    return 0;
}

struct scene {
    struct fixture api; /* its store, loop and folder; no request goes through it */
    struct home home;
    struct gpus gpus;
    struct leases *leases;
    struct environments *environments;
    struct routes *routes;
    struct api_hooks hooks;
};

static void open_routes(struct scene *s)
{
    const struct routes_options options = {.loop = &s->api.loop,
                                           .home = &s->home,
                                           .store = s->api.store,
                                           .leases = s->leases,
                                           .gpus = &s->gpus,
                                           .node_name = "node",
                                           .environments = s->environments};
    assert_int_equal(routes_new(&options, &s->routes, &s->hooks, NULL), 0);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    const struct api_hooks none = {0};
    fixture_init(&s->api, &none);
    s->home.path = s->api.folder;
    assert_int_equal(leases_new(&s->api.loop, s->api.store, &s->leases, NULL), 0);
    assert_int_equal(environments_new(&s->api.loop, s->api.store, &s->home, &s->environments, NULL),
                     0);
    open_routes(s);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    routes_free(s->routes);
    environments_free(s->environments);
    leases_free(s->leases);
    fixture_done(&s->api);
    free(s);
    return 0;
}

/* Returns the status; *ret is the answer. `body` is JSON with ' instead of ". */
static int call(struct scene *s, const char *method, const char *rest, const char *body,
                json_t **ret)
{
    struct fake_reply reply;
    muster_auto(free) char *text = strdup(body ? body : "");
    for (char *c = text; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    const struct http_request request = {
        .method = method, .path = rest, .body = text, .body_bytes = strlen(text)};
    fake_init(&reply);
    s->hooks.muster(s->hooks.arg, rest, &request, &reply.reply);
    assert_true(reply.ended);
    if (ret) {
        assert_int_equal(doc_parse(reply.bytes.data, reply.bytes.used, ret, NULL), 0);
    }
    int status = reply.status;
    fake_done(&reply);
    return status;
}

static void a_path_is_somebodys_or_nobodys(void **state)
{
    static const char *const nobodys[] = {"",       "stat",         "statusx",    "status/",
                                          "keep/x", "environments", "namespaces", "nothing"};
    for (size_t i = 0; i < sizeof nobodys / sizeof nobodys[0]; i++) {
        if (call(*state, "GET", nobodys[i], NULL, NULL) != 404) {
            fail_msg("\"%s\" is somebody's", nobodys[i]);
        }
    }
    assert_int_equal(call(*state, "GET", "status", NULL, NULL), 200);
    assert_int_equal(call(*state, "POST", "status", NULL, NULL), 405);
    assert_int_equal(call(*state, "GET", "keep", NULL, NULL), 405);
    assert_int_equal(call(*state, "POST", "keep", NULL, NULL), 405);
    assert_int_equal(call(*state, "GET", "shutdown", NULL, NULL), 405);
    assert_int_equal(call(*state, "GET", "environments/x", NULL, NULL), 405);
}

static void add(struct scene *s, const char *resource, const char *object)
{
    muster_auto(doc) json_t *doc = parse(object);
    assert_int_equal(store_create(s->api.store, resource, doc, NULL, NULL), 0);
}

#define STORED_JOB(name, condition)                                                                \
    "{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': '" name          \
    "', 'namespace': 'default'}, 'status': {'conditions': [{'type': '" condition                   \
    "', 'status': 'True'}]}}"

static void the_status_counts_what_lives(void **state)
{
    struct scene *s = *state;
    const struct muster_err why_not = {.code = MUSTER_EOS, .text = "no TLS here"};
    muster_auto(doc) json_t *before = NULL;
    muster_auto(doc) json_t *after = NULL;
    add(s, "pytorchjobs", STORED_JOB("a", "Running"));
    add(s, "pytorchjobs", STORED_JOB("b", "Succeeded"));
    assert_int_equal(call(s, "GET", "status", NULL, &before), 200);
    assert_int_equal(doc_int(before, "jobs", -1), 1);
    assert_string_equal(doc_text(before, "home", ""), s->home.path);
    assert_false(doc_bool(before, "keep", true));
    routes_serve_at(s->routes, NULL, &why_not);
    assert_int_equal(call(s, "GET", "status", NULL, &after), 200);
    assert_string_equal(doc_text(after, "server", "?"), "");
    assert_string_equal(doc_text(after, "serverError", ""), "no TLS here");
}

/* `muster up` is also valid for the next controller. */
static void keep_is_kept_over_a_restart(void **state)
{
    struct scene *s = *state;
    muster_auto(doc) json_t *doc = NULL;
    assert_int_equal(call(s, "PUT", "keep", "{'keep': true}", &doc), 200);
    assert_true(doc_bool(doc, "keep", false));
    routes_free(s->routes);
    open_routes(s);
    assert_true(routes_keep(s->routes));
    assert_int_equal(call(s, "PUT", "keep", "{'keep': false}", NULL), 200);
    assert_false(routes_keep(s->routes));
    routes_free(s->routes);
    open_routes(s);
    assert_false(routes_keep(s->routes));
    assert_int_equal(call(s, "PUT", "keep", "no JSON", NULL), 422);
    assert_false(routes_keep(s->routes));
}

static json_t *get(const struct scene *s, const char *resource, const char *name)
{
    json_t *object = NULL;
    const struct store_key key = {resource, "default", name};
    return store_get(s->api.store, key, &object, NULL) == 0 ? object : NULL;
}

static int admit(const struct scene *s, const char *resource, struct muster_err *err)
{
    muster_auto(doc) json_t *object = parse(STORED_JOB("new", "Created"));
    struct job_problems problems;
    job_problems_init(&problems, 8);
    int r = s->hooks.admit(s->hooks.arg, resource, object, &problems, err);
    job_problems_done(&problems);
    return r;
}

static void a_shutdown_ends_jobs_and_lone_pods_and_admits_no_job(void **state)
{
    struct scene *s = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    add(s, "pytorchjobs", STORED_JOB("a", "Running"));
    add(s, "pods", "{'metadata': {'name': 'alone', 'namespace': 'default'}}");
    add(s, "pods",
        "{'metadata': {'name': 'owned', 'namespace': 'default', 'ownerReferences': [{'kind': "
        "'PyTorchJob', 'name': 'x', 'uid': 'u', 'controller': true}]}}");
    assert_int_equal(call(s, "PUT", "keep", "{}", NULL), 200);
    assert_int_equal(routes_leaving(s->routes), ROUTES_STAY);
    assert_int_equal(admit(s, "pytorchjobs", &err), 0);
    assert_int_equal(call(s, "POST", "shutdown", "{'jobs': 'end'}", NULL), 200);
    assert_int_equal(routes_leaving(s->routes), ROUTES_LEAVE_WHEN_DONE);
    assert_false(routes_keep(s->routes));
    muster_auto(doc) json_t *job = get(s, "pytorchjobs", "a");
    muster_auto(doc) json_t *alone = get(s, "pods", "alone");
    muster_auto(doc) json_t *owned = get(s, "pods", "owned");
    assert_string_equal(jobs_annotation(job, JOB_ANNOTATION_STOP), "muster down was given");
    assert_null(alone);
    assert_non_null(owned);
    assert_int_equal(admit(s, "pytorchjobs", &err), MUSTER_EAGAIN);
    assert_int_equal(admit(s, "configmaps", &err), 0);
}

static void count(void *data)
{
    ++*(int *)data;
}

static void a_shutdown_that_keeps_jobs_touches_none(void **state)
{
    struct scene *s = *state;
    int asked = 0;
    routes_on_shutdown(s->routes, count, &asked);
    add(s, "pytorchjobs", STORED_JOB("a", "Running"));
    assert_int_equal(call(s, "POST", "shutdown", "{", NULL), 422);
    assert_int_equal(routes_leaving(s->routes), ROUTES_STAY);
    assert_int_equal(asked, 0);
    assert_int_equal(call(s, "POST", "shutdown", "{'jobs': 'keep'}", NULL), 200);
    assert_int_equal(asked, 1);
    assert_int_equal(routes_leaving(s->routes), ROUTES_LEAVE_NOW);
    muster_auto(doc) json_t *job = get(s, "pytorchjobs", "a");
    assert_null(jobs_annotation(job, JOB_ANNOTATION_STOP));
}

static void an_environments_name_is_no_path(void **state)
{
    static const char *const names[] = {"environments/../x", "environments/", "environments/a/b",
                                        "environments/.."};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (call(*state, "PUT", names[i], "A=b", NULL) < 400) {
            fail_msg("\"%s\" was taken", names[i]);
        }
    }
    assert_int_equal(call(*state, "DELETE", "environments/nobody", NULL, NULL), 200);
}

/* Begins the request of a client whose environment waits for the disk, which is held. */
static void begin_put(struct scene *s, struct fake_reply *reply)
{
    static const char list[] = "A=b\0";
    const struct http_request request = {
        .method = "PUT", .path = ENVIRONMENT, .body = list, .body_bytes = sizeof list};
    fake_init(reply);
    disk.loop_thread = pthread_self();
    disk.held = true;
    s->hooks.muster(s->hooks.arg, ENVIRONMENT, &request, &reply->reply);
}

/* Lets the loop end when all work is done, without waiting for timers. */
static void leave_timer(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (handle->type == UV_TIMER) {
        uv_unref(handle);
    }
}

static void release_disk(struct scene *s)
{
    assert_int_equal(sem_post(&disk.released), 0);
    assert_int_equal(sem_post(&disk.released), 0); /* the fsync of the file, and of its folder */
    uv_walk(&s->api.loop, leave_timer, NULL);
    uv_run(&s->api.loop, UV_RUN_DEFAULT);
    disk.held = false;
}

static void a_slow_fsync_of_an_environment_delays_no_other_request(void **state)
{
    struct scene *s = *state;
    struct fake_reply put;
    muster_auto(free) char *path = file_join(s->api.folder, ENVIRONMENT);
    begin_put(s, &put);
    assert_int_equal(call(s, "GET", "status", NULL, NULL), 200);
    assert_false(disk.on_loop);
    assert_false(put.ended);
    assert_false(file_exists(path));
    release_disk(s);
    assert_true(put.ended);
    assert_int_equal(put.status, 200);
    assert_true(file_exists(path));
    fake_done(&put);
}

static void a_client_that_goes_while_the_disk_is_slow_is_not_answered(void **state)
{
    struct scene *s = *state;
    struct fake_reply put;
    begin_put(s, &put);
    put.reply.on_gone(put.reply.arg);
    release_disk(s);
    assert_false(put.ended);
    fake_done(&put);
}

/* Makes a run in the history; returns its folder, which the caller frees. */
static char *keep_run(struct scene *s)
{
    const struct history_run run = {"default", "a", 7};
    char *folder = NULL;
    assert_int_equal(history_path(&s->home, &run, &folder, NULL), 0);
    muster_auto(free) char *summary = file_join(folder, "summary.json");
    assert_int_equal(file_mkdir(folder, 0700, NULL), 0);
    assert_int_equal(file_put(summary, "{}", 2, 0600, NULL), 0);
    return folder;
}

static void begin_removal(struct scene *s, struct fake_reply *reply)
{
    static const struct http_pair query[] = {{"namespace", "default"}, {"job", "a"}};
    const struct http_request request = {
        .method = "DELETE", .path = "history", .query = query, .query_count = 2, .body = ""};
    fake_init(reply);
    disk.loop_thread = pthread_self();
    disk.held = true;
    s->hooks.muster(s->hooks.arg, "history", &request, &reply->reply);
}

static void runs_are_removed_while_other_requests_are_answered(void **state)
{
    struct scene *s = *state;
    struct fake_reply removal;
    muster_auto(free) char *folder = keep_run(s);
    muster_auto(doc) json_t *answer = NULL;
    begin_removal(s, &removal);
    assert_int_equal(call(s, "GET", "status", NULL, NULL), 200);
    assert_false(disk.on_loop);
    assert_false(removal.ended);
    assert_true(file_exists(folder)); /* the number must be on the disk first */
    release_disk(s);
    assert_int_equal(removal.status, 200);
    assert_int_equal(doc_parse(removal.bytes.data, removal.bytes.used, &answer, NULL), 0);
    assert_int_equal(doc_int(answer, "removed", 0), 1);
    assert_false(file_exists(folder));
    fake_done(&removal);
}

static void who_goes_while_runs_are_removed_is_not_answered(void **state)
{
    struct scene *s = *state;
    struct fake_reply removal;
    muster_auto(free) char *folder = keep_run(s);
    begin_removal(s, &removal);
    removal.reply.on_gone(removal.reply.arg);
    release_disk(s);
    assert_false(removal.ended);
    assert_false(file_exists(folder));
    fake_done(&removal);
}

static void leases_are_passed_on(void **state)
{
    struct scene *s = *state;
    s->hooks.lease_opened(s->hooks.arg, "run-1-a");
    assert_true(leases_is_open(s->leases, "run-1-a"));
    s->hooks.lease_closed(s->hooks.arg, "run-1-a");
    assert_false(leases_is_open(s->leases, "run-1-a"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_path_is_somebodys_or_nobodys),
        TEST(the_status_counts_what_lives),
        TEST(keep_is_kept_over_a_restart),
        TEST(a_shutdown_ends_jobs_and_lone_pods_and_admits_no_job),
        TEST(a_shutdown_that_keeps_jobs_touches_none),
        TEST(an_environments_name_is_no_path),
        TEST(a_slow_fsync_of_an_environment_delays_no_other_request),
        TEST(a_client_that_goes_while_the_disk_is_slow_is_not_answered),
        TEST(runs_are_removed_while_other_requests_are_answered),
        TEST(who_goes_while_runs_are_removed_is_not_answered),
        TEST(leases_are_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
