/* Checks requests that stay open: watches, leases and followed logs, and how each of them ends. */
#include "api/fixture.h"

/* Returns the types and names of the events so far: "ADDED a, DELETED a". */
static const char *heard(const struct fake_reply *reply)
{
    static char text[1024];
    text[0] = '\0';
    for (const char *line = buf_str(&reply->bytes); *line; line = strchr(line, '\n') + 1) {
        muster_auto(doc) json_t *event =
            json_loadb(line, (size_t)(strchr(line, '\n') - line), 0, NULL);
        const char *name =
            doc_text(event, "object.metadata.name", doc_text(event, "object.rows.0.cells.0", ""));
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %s",
                       *text ? ", " : "", doc_text(event, "type", "?"), name);
    }
    return text;
}

static void watch(struct fixture *f, struct fake_reply *reply, const char *target)
{
    fake_init(reply);
    fixture_send(f, reply, "GET", target, NULL, NULL, NULL);
}

static void leave(struct fake_reply *reply)
{
    reply->reply.on_gone(reply->reply.arg);
    fake_done(reply);
}

static void label(struct fixture *f, const char *name, const char *value)
{
    char target[128];
    char body[128];
    (void)snprintf(target, sizeof target, CONFIG_MAPS "/%s", name);
    (void)snprintf(body, sizeof body, "{'metadata':{'labels':{'l':%s}}}", value);
    assert_int_equal(
        fixture_call_as(f, "PATCH", target, body, "application/merge-patch+json", NULL), 200);
}

/* For a watch with a selector, objects appear and disappear when they change, not only when they
 * are created or deleted. */
static void a_watch_follows_its_selector(void **state)
{
    (void)state;
    struct fixture f;
    struct fake_reply reply;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("a"));
    watch(&f, &reply, CONFIG_MAPS "?watch=true&labelSelector=l=v");
    assert_string_equal(heard(&reply), "ADDED a");
    fixture_call(&f, "POST", CONFIG_MAPS, "{'metadata':{'name':'b'}}");
    label(&f, "b", "'v'");
    label(&f, "a", "null");
    fixture_call(&f, "DELETE", CONFIG_MAPS "/b", NULL);
    fixture_call(&f, "DELETE", CONFIG_MAPS "/a", NULL);
    assert_string_equal(heard(&reply), "ADDED a, ADDED b, DELETED a, DELETED b");
    assert_int_equal(api_watch_count(f.api), 1);
    leave(&reply);
    assert_int_equal(api_watch_count(f.api), 0);
    fixture_done(&f);
}

static void a_watch_goes_on_from_a_version(void **state)
{
    (void)state;
    struct fixture f;
    struct fake_reply reply;
    char target[128];
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("a"));
    (void)snprintf(target, sizeof target, CONFIG_MAPS "?watch=1&resourceVersion=%s",
                   answer(&f, "metadata.resourceVersion"));
    fixture_call(&f, "DELETE", CONFIG_MAPS "/a", NULL);
    watch(&f, &reply, target);
    fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("c"));
    assert_string_equal(heard(&reply), "DELETED a, ADDED c");
    leave(&reply);
    fixture_done(&f);
}

static void a_watcher_that_reads_too_slowly_is_ended(void **state)
{
    (void)state;
    struct fixture f;
    struct fake_reply reply;
    fixture_init(&f, NULL);
    watch(&f, &reply, CONFIG_MAPS "?watch=true");
    reply.room = 600;
    for (int i = 0; i < 10; i++) {
        char body[128];
        (void)snprintf(body, sizeof body, "{'metadata':{'name':'n%d'}}", i);
        assert_int_equal(fixture_call(&f, "POST", CONFIG_MAPS, body), 201);
    }
    assert_true(reply.ended);
    assert_int_equal(api_watch_count(f.api), 0);
    fake_done(&reply);
    fixture_done(&f);
}

static void a_watch_ends_when_its_time_is_over(void **state)
{
    (void)state;
    struct fixture f;
    struct fake_reply reply;
    fixture_init(&f, NULL);
    watch(&f, &reply, CONFIG_MAPS "?watch=true&timeoutSeconds=1");
    assert_false(reply.ended);
    while (!reply.ended) {
        assert_true(uv_run(&f.loop, UV_RUN_ONCE) || reply.ended);
    }
    assert_int_equal(api_watch_count(f.api), 0);
    fake_done(&reply);
    fixture_done(&f);
}

static void a_watcher_may_ask_where_the_present_ends(void **state)
{
    (void)state;
    struct fixture f;
    struct fake_reply reply;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("a"));
    watch(&f, &reply,
          CONFIG_MAPS "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
                      "&resourceVersionMatch=NotOlderThan");
    assert_string_equal(heard(&reply), "ADDED a, BOOKMARK ");
    assert_non_null(strstr(buf_str(&reply.bytes), "k8s.io/initial-events-end"));
    leave(&reply);
    fixture_done(&f);
}

struct book {
    char text[256];
};

static void note_opened(void *arg, const char *id)
{
    struct book *book = arg;
    (void)snprintf(book->text + strlen(book->text), sizeof book->text - strlen(book->text), "+%s ",
                   id);
}

static void note_closed(void *arg, const char *id)
{
    struct book *book = arg;
    (void)snprintf(book->text + strlen(book->text), sizeof book->text - strlen(book->text), "-%s ",
                   id);
}

static void a_lease_ends_with_its_client_not_with_the_server(void **state)
{
    (void)state;
    struct fixture f;
    struct fake_reply first, second;
    struct book book = {""};
    const struct api_hooks hooks = {
        .arg = &book, .lease_opened = note_opened, .lease_closed = note_closed};
    fixture_init(&f, &hooks);
    watch(&f, &first, "/muster/v1/leases/abc");
    watch(&f, &second, "/muster/v1/leases/xyz");
    assert_string_equal(buf_str(&first.bytes), "{}\n");
    assert_int_equal(api_lease_count(f.api), 2);
    leave(&first);
    assert_string_equal(book.text, "+abc +xyz -abc ");
    fixture_done(&f);
    assert_true(second.ended);
    assert_string_equal(book.text, "+abc +xyz -abc ");
    fake_done(&second);
}

static void print_query(void *arg, const struct api_log_query *query, const json_t *pod,
                        struct http_reply *reply)
{
    (void)arg;
    (void)pod;
    char text[128];
    int n = snprintf(text, sizeof text, "%s follow=%d tail=%d limit=%d since=%d", query->container,
                     query->follow, (int)query->tail_lines, (int)query->limit_bytes,
                     query->since_unix_ms > 0);
    http_reply_send(reply, 200, "text/plain", text, (size_t)n);
}

static void log_queries_are_read_and_containers_chosen(void **state)
{
    (void)state;
    struct fixture f;
    const struct api_hooks hooks = {.pod_log = print_query};
    fixture_init(&f, &hooks);
    fixture_call(&f, "POST", PODS, POD("one"));
    fixture_call(&f, "POST", PODS,
                 "{'metadata':{'name':'two'},'spec':{'containers':[{'name':'a','image':'x'},"
                 "{'name':'b','image':'x'}]}}");
    assert_int_equal(fixture_call(&f, "GET", PODS "/one/log", NULL), 200);
    assert_string_equal(buf_str(&f.last.bytes), "main follow=0 tail=-1 limit=-1 since=0");
    assert_int_equal(fixture_call(&f, "GET",
                                  PODS "/two/log?container=b&follow=true&tailLines=7&limitBytes=9&"
                                       "sinceSeconds=5",
                                  NULL),
                     200);
    assert_string_equal(buf_str(&f.last.bytes), "b follow=1 tail=7 limit=9 since=1");
    assert_int_equal(fixture_call(&f, "GET", PODS "/two/log", NULL), 400);
    assert_non_null(strstr(answer(&f, "message"), "choose one of: [a b]"));
    assert_int_equal(fixture_call(&f, "GET", PODS "/one/log?container=x", NULL), 400);
    assert_int_equal(fixture_call(&f, "GET", PODS "/one/log?tailLines=-2", NULL), 400);
    assert_int_equal(fixture_call(&f, "GET", PODS "/one/log?sinceTime=soon", NULL), 400);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watch_follows_its_selector),
        cmocka_unit_test(a_watch_goes_on_from_a_version),
        cmocka_unit_test(a_watcher_that_reads_too_slowly_is_ended),
        cmocka_unit_test(a_watch_ends_when_its_time_is_over),
        cmocka_unit_test(a_watcher_may_ask_where_the_present_ends),
        cmocka_unit_test(a_lease_ends_with_its_client_not_with_the_server),
        cmocka_unit_test(log_queries_are_read_and_containers_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
