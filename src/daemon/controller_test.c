/* The controller with a real store: a job gets pods, ends when they end, and fails if it is
 * stopped. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "daemon/controller.h"
#include "daemon/object/leases.h"

enum { TURNS_MAX = 2000 };

struct world {
    char folder[TEST_FOLDER_BYTES];
    uv_loop_t loop;
    struct store *store;
    struct controller *controller;
};

static const char job_text[] =
    "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"j\","
    "\"namespace\":\"default\"},\"spec\":{\"pytorchReplicaSpecs\":{"
    "\"Master\":{\"replicas\":1,\"restartPolicy\":\"Never\",\"template\":{\"spec\":{\"containers\":[{"
    "\"name\":\"pytorch\",\"image\":\"i\",\"command\":[\"true\"]}]}}},"
    "\"Worker\":{\"replicas\":2,\"restartPolicy\":\"Never\",\"template\":{\"spec\":{\"containers\":[{"
    "\"name\":\"pytorch\",\"image\":\"i\",\"command\":[\"true\"]}]}}}}}}";

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    test_folder_make(w->folder);
    muster_auto(free) char *path = file_join(w->folder, "store.db");
    uv_loop_init(&w->loop);
    assert_int_equal(store_open(path, NULL, &w->store, NULL), 0);
    assert_int_equal(controller_new(&w->loop, w->store, &w->controller, NULL), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    controller_free(w->controller);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    store_close(w->store);
    uv_loop_close(&w->loop);
    test_folder_remove(w->folder);
    free(w);
    return 0;
}

static json_t *list(struct world *w, const char *resource)
{
    struct store_page page = {0};
    assert_int_equal(store_list(w->store, &(struct store_query){.resource = resource}, &page, NULL),
                     0);
    json_t *items = json_incref(page.items);
    store_page_done(&page);
    return items;
}

static size_t count(struct world *w, const char *resource)
{
    muster_auto(doc) json_t *items = list(w, resource);
    return json_array_size(items);
}

static json_t *get_job(struct world *w)
{
    json_t *job = NULL;
    assert_int_equal(
        store_get(w->store, (struct store_key){"pytorchjobs", "default", "j"}, &job, NULL), 0);
    return job;
}

/* Turns the loop until nothing is queued. */
static void settle(struct world *w)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        uv_run(&w->loop, UV_RUN_NOWAIT);
    }
}

static void create_job(struct world *w)
{
    muster_auto(doc) json_t *job = NULL;
    assert_int_equal(doc_parse(job_text, strlen(job_text), &job, NULL), 0);
    assert_int_equal(store_create(w->store, "pytorchjobs", job, NULL, NULL), 0);
    settle(w);
}

static void set_phases(struct world *w, const char *phase)
{
    muster_auto(doc) json_t *pods = list(w, "pods");
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        muster_auto(doc) json_t *changed = json_deep_copy(pod);
        doc_set_text(changed, "status.phase", phase);
        assert_int_equal(store_update(w->store, "pods", changed, STORE_STATUS_ONLY, NULL, NULL), 0);
    }
    settle(w);
}

static bool has_condition(struct world *w, const char *type)
{
    muster_auto(doc) json_t *job = get_job(w);
    const json_t *condition = doc_find(doc_at(job, "status.conditions"), "type", type);
    return strcmp(doc_text(condition, "status", ""), "True") == 0;
}

static void a_job_becomes_pods_and_ends_with_them(void **state)
{
    struct world *w = *state;
    create_job(w);
    assert_int_equal(count(w, "pods"), 3);
    assert_int_equal(count(w, "services"), 3);
    assert_true(has_condition(w, "Created"));
    assert_int_equal(controller_live_jobs(w->controller), 1);
    set_phases(w, "Running");
    assert_true(has_condition(w, "Running"));
    set_phases(w, "Succeeded");
    assert_true(has_condition(w, "Succeeded"));
    assert_int_equal(controller_live_jobs(w->controller), 0);
    assert_true(count(w, "events") > 0);
}

static void a_stopped_job_fails_and_loses_its_pods(void **state)
{
    struct world *w = *state;
    create_job(w);
    set_phases(w, "Running");
    muster_auto(doc) json_t *job = get_job(w);
    assert_int_equal(leases_stop_job(w->store, job, "its runner went away", NULL), 0);
    settle(w);
    assert_true(has_condition(w, "Failed"));
    assert_int_equal(count(w, "pods"), 0);
}

static void a_deleted_job_is_forgotten(void **state)
{
    struct world *w = *state;
    create_job(w);
    const struct store_key key = {"pytorchjobs", "default", "j"};
    assert_int_equal(store_delete(w->store, key, NULL, NULL, NULL), 0);
    settle(w);
    assert_int_equal(count(w, "pods"), 0);
    assert_false(controller_busy(w->controller));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_becomes_pods_and_ends_with_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stopped_job_fails_and_loses_its_pods, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_deleted_job_is_forgotten, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
