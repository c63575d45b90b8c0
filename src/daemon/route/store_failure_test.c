/* A store that cannot be read: its error is reported, and no code takes it for a missing object.
 *
 * The text of one object is overwritten in the database, so that the object can be found but not
 * read.
 */
#include "api/fixture.h"
#include "base/testing/test_doc.h"
#include "daemon/history/sweep.h"
#include "daemon/object/events.h"
#include "daemon/object/leases.h"
#include "daemon/route/history.h"
#include "daemon/route/pod.h"
#include "daemon/route/routes.h"

#include <sqlite3.h>

#define STORED_JOB(name, condition)                                                                \
    "{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': '" name          \
    "', 'namespace': 'default', 'uid': 'u-" name                                                   \
    "'}, 'status': {'conditions': [{'type': '" condition "', 'status': 'True'}]}}"
#define OWNED_POD(name, job)                                                                       \
    "{'metadata': {'name': '" name "', 'namespace': 'default', 'uid': 'u-" name                    \
    "', 'resourceVersion': '1', 'ownerReferences': [{'kind': 'PyTorchJob', 'name': '" job          \
    "', 'uid': '%s', 'controller': true}]}, 'spec': {'containers': [{'name': 'c'}]}}"

struct scene {
    char folder[TEST_FOLDER_BYTES];
    struct home home;
    uv_loop_t loop;
    struct store *store;
    struct leases *leases;
    struct sweep *sweep;
    struct routes *routes;
    struct api_hooks hooks;
    struct gpus gpus;
    struct fake_reply reply;
    struct muster_err err;
};

static void open_all(struct scene *s)
{
    muster_auto(free) char *path = file_join(s->folder, "store.db");
    assert_int_equal(uv_loop_init(&s->loop), 0);
    assert_int_equal(store_open(path, &(struct store_options){0}, &s->store, NULL), 0);
    assert_int_equal(leases_new(&s->loop, s->store, &s->leases, NULL), 0);
    assert_int_equal(sweep_new(&s->loop, s->store, &s->home, s->leases, &s->sweep, NULL), 0);
    const struct routes_options options = {.loop = &s->loop,
                                           .home = &s->home,
                                           .store = s->store,
                                           .leases = s->leases,
                                           .sweep = s->sweep,
                                           .gpus = &s->gpus,
                                           .node_name = "node"};
    assert_int_equal(routes_new(&options, &s->routes, &s->hooks, NULL), 0);
}

static void close_all(struct scene *s)
{
    routes_free(s->routes);
    s->sweep = sweep_free(s->sweep);
    leases_free(s->leases);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    s->store = store_close(s->store);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    s->err = (struct muster_err)MUSTER_ERR_INIT;
    test_folder_make(s->folder);
    s->home.path = s->folder;
    fake_init(&s->reply);
    open_all(s);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    close_all(s);
    fake_done(&s->reply);
    test_folder_remove(s->folder);
    free(s);
    return 0;
}

/* Adds an object and returns its uid, which the caller frees. */
static char *add(struct scene *s, const char *resource, const char *text)
{
    muster_auto(doc) json_t *object = parse(text);
    muster_auto(doc) json_t *stored = NULL;
    assert_int_equal(store_create(s->store, resource, object, &stored, &s->err), 0);
    return strdup(doc_text(stored, "metadata.uid", ""));
}

static void add_pod(struct scene *s, const char *job_uid, char **ret_text)
{
    muster_auto(free) char *uid = NULL;
    assert_true(asprintf(ret_text, OWNED_POD("p", "j"), job_uid) > 0);
    uid = add(s, "pods", *ret_text);
}

/* Damages the object: it can still be found, but not be read. */
static void damage(struct scene *s, const char *resource, const char *name)
{
    sqlite3 *db = NULL;
    muster_auto(free) char *path = file_join(s->folder, "store.db");
    close_all(s);
    char *sql = sqlite3_mprintf("UPDATE objects SET object = '{' WHERE resource = %Q AND name = %Q",
                                resource, name);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    sqlite3_free(sql);
    open_all(s);
}

/* Returns the answer's status; the text is in s->reply.bytes. */
static int call(struct scene *s, const char *method, const char *rest, const char *body)
{
    const struct http_request request = {
        .method = method, .path = rest, .body = body, .body_bytes = strlen(body)};
    fake_done(&s->reply);
    fake_init(&s->reply);
    s->hooks.muster(s->hooks.arg, rest, &request, &s->reply.reply);
    return s->reply.status;
}

static void expect_said(struct scene *s, const char *words)
{
    buf_add(&s->reply.bytes, "", 1);
    if (!strstr(s->reply.bytes.data, words)) {
        fail_msg("\"%s\" is not in: %s", words, (const char *)s->reply.bytes.data);
    }
}

/* Writes the data that the agent keeps of a pod before it deletes the pod. */
static void keep_pod(struct scene *s, const char *job_uid, const char *text)
{
    muster_auto(doc) json_t *pod = parse(text);
    muster_auto(free) char *printed = doc_print(pod);
    char folder[128], path[160];
    (void)snprintf(folder, sizeof folder, "%s/jobs/%s/pods", s->folder, job_uid);
    (void)snprintf(path, sizeof path, "%s/u-p.json", folder);
    assert_int_equal(file_mkdir(folder, 0700, NULL), 0);
    assert_int_equal(file_put(path, printed, strlen(printed), 0600, NULL), 0);
}

static void a_pod_that_cannot_be_read_is_not_a_deleted_one(void **state)
{
    struct scene *s = *state;
    muster_auto(free) char *job = add(s, "pytorchjobs", STORED_JOB("j", "Running"));
    muster_auto(free) char *text = NULL;
    add_pod(s, job, &text);
    keep_pod(s, job, text);
    damage(s, "pods", "p");
    assert_int_equal(call(s, "GET", "namespaces/default/pods/p/log", ""), 500);
    expect_said(s, "pods \\\"p\\\" in it cannot be read");
    assert_int_equal(call(s, "GET", "namespaces/default/pods/another/log", ""), 500);
    assert_int_equal(call(s, "GET", "namespaces/default/pods", ""), 500);
}

static void a_job_that_cannot_be_read_is_not_a_run_that_is_gone(void **state)
{
    struct scene *s = *state;
    muster_auto(free) char *job = add(s, "pytorchjobs", STORED_JOB("j", "Running"));
    assert_int_equal(call(s, "GET", "history/default/j/1", ""), 200);
    assert_int_equal(call(s, "GET", "history/default/j/2", ""), 404);
    damage(s, "pytorchjobs", "j");
    assert_int_equal(call(s, "GET", "history/default/j/1", ""), 500);
    expect_said(s, "pytorchjobs \\\"j\\\" in it cannot be read");
    assert_int_equal(call(s, "GET", "history/default/j/2", ""), 404);
}

static void a_run_whose_pods_cannot_be_read_is_not_one_without_pods(void **state)
{
    struct scene *s = *state;
    muster_auto(free) char *job = add(s, "pytorchjobs", STORED_JOB("j", "Running"));
    muster_auto(free) char *text = NULL;
    add_pod(s, job, &text);
    assert_int_equal(call(s, "GET", "history", ""), 200);
    damage(s, "pods", "p");
    assert_int_equal(call(s, "GET", "history", ""), 500);
    assert_int_equal(call(s, "GET", "history/default/j/1", ""), 500);
}

static void who_cannot_tell_what_runs_does_not_say_that_nothing_does(void **state)
{
    struct scene *s = *state;
    muster_auto(free) char *job = add(s, "pytorchjobs", STORED_JOB("j", "Running"));
    damage(s, "pytorchjobs", "j");
    assert_int_equal(call(s, "GET", "status", ""), 200); /* `muster down` needs the pid in it */
    expect_said(s, "\"storeError\":\"the store ");
    assert_null(strstr(s->reply.bytes.data, "\"jobs\":"));
    assert_int_equal(call(s, "POST", "shutdown", "{\"jobs\": \"end\"}"), 500);
    assert_int_equal(routes_leaving(s->routes), ROUTES_STAY);
    assert_int_equal(call(s, "POST", "shutdown", "{\"jobs\": \"keep\"}"), 200);
    assert_int_equal(routes_leaving(s->routes), ROUTES_LEAVE_NOW);
}

static void pods_that_cannot_be_read_are_not_stopped_ones(void **state)
{
    struct scene *s = *state;
    muster_auto(free) char *uid = add(s, "pytorchjobs", STORED_JOB("j", "Succeeded"));
    muster_auto(free) char *text = NULL;
    muster_auto(doc) json_t *job = NULL;
    add_pod(s, uid, &text);
    damage(s, "pods", "p");
    assert_int_equal(
        store_get(s->store, (struct store_key){"pytorchjobs", "default", "j"}, &job, NULL), 0);
    assert_int_equal(leases_stop_job(s->store, job, "why", &s->err), MUSTER_EIO);
}

static void an_event_that_cannot_be_read_is_not_a_new_one(void **state)
{
    struct scene *s = *state;
    muster_auto(doc) json_t *about = parse(STORED_JOB("j", "Running"));
    const struct event_note note = {
        .about = about, .component = "test", .reason = "Why", .message = "m"};
    struct store_page page = {0};
    assert_int_equal(event_record(s->store, &note, &s->err), 0);
    assert_int_equal(store_list(s->store, &(struct store_query){.resource = "events"}, &page, NULL),
                     0);
    muster_auto(free) char *name =
        strdup(doc_text(json_array_get(page.items, 0), "metadata.name", ""));
    store_page_done(&page);
    damage(s, "events", name);
    assert_int_equal(event_record(s->store, &note, &s->err), MUSTER_EIO);
    assert_non_null(strstr(s->err.text, name));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pod_that_cannot_be_read_is_not_a_deleted_one),
        TEST(a_job_that_cannot_be_read_is_not_a_run_that_is_gone),
        TEST(a_run_whose_pods_cannot_be_read_is_not_one_without_pods),
        TEST(who_cannot_tell_what_runs_does_not_say_that_nothing_does),
        TEST(pods_that_cannot_be_read_are_not_stopped_ones),
        TEST(an_event_that_cannot_be_read_is_not_a_new_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
