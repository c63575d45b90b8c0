/* Checks that the store as a cluster guarantees what controller/cluster.h asks of a back end. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "daemon/store_cluster.h"

static const struct cluster_resource pods = {"", "v1", "pods", "Pod", true};

struct world {
    uv_loop_t loop;
    struct store *store;
    struct cluster *cluster;
    char told[512]; /* what watches and answers reported, in order */
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    uv_loop_init(&w->loop);
    assert_int_equal(store_open(":memory:", NULL, &w->store, NULL), 0);
    assert_int_equal(store_cluster_new(&w->loop, w->store, &w->cluster, NULL), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    store_cluster_free(w->cluster);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    store_close(w->store);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    free(w);
    return 0;
}

static void tell(struct world *w, const char *text)
{
    assert_true(strlen(w->told) + strlen(text) + 2 < sizeof w->told);
    strncat(w->told, text, sizeof w->told - strlen(w->told) - 1);
}

static void on_answer(void *arg, const struct cluster_answer *answer)
{
    struct world *w = arg;
    tell(w, answer->code == 0 ? "ok " : answer->reason);
    tell(w, answer->code == 0 ? "" : " ");
}

static json_t *pod(const char *name)
{
    return json_pack("{s:{s:s, s:s}}", "metadata", "name", name, "namespace", "default");
}

static struct cluster_call *send_it(struct world *w, struct cluster_request request)
{
    struct cluster_call *call = NULL;
    request.resource = &pods;
    request.namespace = "default";
    assert_int_equal(w->cluster->backend->send(w->cluster, &request, on_answer, w, &call, NULL), 0);
    return call;
}

static struct cluster_call *create(struct world *w, const char *name)
{
    json_t *body = pod(name);
    struct cluster_call *call =
        send_it(w, (struct cluster_request){.verb = CLUSTER_CREATE, .body = body});
    json_decref(body);
    return call;
}

static void run(struct world *w, const char *told)
{
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_string_equal(w->told, told);
    w->told[0] = '\0';
}

static void requests_are_answered_later_in_their_order(void **state)
{
    struct world *w = *state;
    create(w, "a");
    create(w, "a");
    send_it(w, (struct cluster_request){.verb = CLUSTER_GET, .name = "a"});
    send_it(w, (struct cluster_request){.verb = CLUSTER_GET, .name = "b"});
    assert_string_equal(w->told, "");
    run(w, "ok AlreadyExists ok NotFound ");
}

static void what_was_cancelled_is_not_answered(void **state)
{
    struct world *w = *state;
    struct cluster_call *call = create(w, "a");
    create(w, "b");
    w->cluster->backend->cancel(call);
    run(w, "ok ");
}

static void preconditions_are_held(void **state)
{
    struct world *w = *state;
    create(w, "a");
    run(w, "ok ");
    send_it(w, (struct cluster_request){.verb = CLUSTER_DELETE, .name = "a", .uid = "other"});
    run(w, "Conflict ");
    json_t *patch = parse("{'metadata': {'resourceVersion': '999', 'labels': {'x': 'y'}}}");
    send_it(w, (struct cluster_request){.verb = CLUSTER_PATCH, .name = "a", .body = patch});
    run(w, "Conflict ");
    json_object_del(json_object_get(patch, "metadata"), "resourceVersion");
    send_it(w, (struct cluster_request){.verb = CLUSTER_PATCH, .name = "a", .body = patch});
    run(w, "ok ");
    json_decref(patch);
    json_t *now = NULL;
    assert_int_equal(store_get(w->store, (struct store_key){"pods", "default", "a"}, &now, NULL),
                     0);
    assert_string_equal(doc_text(now, "metadata.labels.x", ""), "y");
    json_decref(now);
    send_it(w, (struct cluster_request){.verb = CLUSTER_DELETE, .name = "a"});
    run(w, "ok ");
}

static void on_change(void *arg, const struct cluster_change *change)
{
    static const char *const words[] = {
        [CLUSTER_BEGIN] = "begin ", [CLUSTER_OBJECT] = "object ", [CLUSTER_SYNCED] = "synced ",
        [CLUSTER_GONE] = "gone ",   [CLUSTER_BOOKMARK] = "? ",    [CLUSTER_TROUBLE] = "? ",
    };
    tell(arg, words[change->news]);
}

static void a_watch_lists_and_follows(void **state)
{
    struct world *w = *state;
    struct cluster_watch *watch = NULL;
    create(w, "a");
    run(w, "ok ");
    const struct cluster_scope scope = {.resource = &pods};
    assert_int_equal(w->cluster->backend->watch(w->cluster, &scope, on_change, w, &watch, NULL), 0);
    run(w, "begin object synced ");
    create(w, "b");
    run(w, "object ok "); /* the watch reports it before the request is answered */
    send_it(w, (struct cluster_request){.verb = CLUSTER_DELETE, .name = "b"});
    run(w, "gone ok ");
    w->cluster->backend->unwatch(watch);
    create(w, "c");
    run(w, "ok ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_are_answered_later_in_their_order),
        TEST(what_was_cancelled_is_not_answered),
        TEST(preconditions_are_held),
        TEST(a_watch_lists_and_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
