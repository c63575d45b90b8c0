/* Checks that events of the core group and of events.k8s.io/v1 are the same objects, each with its
 * own field names. */
#include "api/fixture.h"

#define CORE "/api/v1/namespaces/default/events"
#define EVENTS "/apis/events.k8s.io/v1/namespaces/default/events"
#define RELATED "'related':{'kind':'Node','name':'n'}"
#define OLD_EVENT                                                                                  \
    "{'apiVersion':'v1','kind':'Event','metadata':{'name':'old'},'involvedObject':{'kind':'Pod',"  \
    "'name':'p','namespace':'default'},'reason':'Started','message':'it runs','type':'Normal',"    \
    "'source':{'component':'kubelet','host':'n'},'firstTimestamp':'2026-01-01T00:00:00Z',"         \
    "'lastTimestamp':'2026-01-01T00:01:00Z','count':3,'reportingComponent':'kubelet',"             \
    "'reportingInstance':'n'," RELATED "}"
#define NEW_EVENT                                                                                  \
    "{'apiVersion':'events.k8s.io/v1','kind':'Event','metadata':{'name':'new'},'regarding':{"      \
    "'kind':'Pod','name':'q','namespace':'default'},'reason':'Killed','note':'it ended',"          \
    "'type':'Warning','action':'Kill','eventTime':'2026-01-01T00:00:00.000001Z',"                  \
    "'reportingController':'example.com/c','reportingInstance':'c-1','series':{'count':2,"         \
    "'lastObservedTime':'2026-01-01T00:02:00.000000Z'}," RELATED "}"

/* The text that an object has at a path, in one of the two shapes. */
struct expectation {
    const char *path, *text;
};

static void expect_all(const json_t *object, const struct expectation *expected)
{
    for (; expected->path; expected++) {
        const json_t *value = doc_at(object, expected->path);
        muster_auto(free) char *number = value ? json_dumps(value, JSON_ENCODE_ANY) : strdup("");
        const char *text = json_is_string(value) ? json_string_value(value) : number;
        if (strcmp(text, expected->text) != 0) {
            fail_msg("%s: \"%s\" instead of \"%s\"", expected->path, text, expected->text);
        }
    }
}

static const struct expectation old_as_core[] = {
    {"apiVersion", "v1"},
    {"involvedObject.name", "p"},
    {"message", "it runs"},
    {"source.host", "n"},
    {"firstTimestamp", "2026-01-01T00:00:00Z"},
    {"lastTimestamp", "2026-01-01T00:01:00Z"},
    {"count", "3"},
    {"reportingComponent", "kubelet"},
    {"related.name", "n"},
    {"regarding", ""},
    {"note", ""},
    {"deprecatedCount", ""},
    {NULL, NULL},
};

static const struct expectation old_as_new[] = {
    {"apiVersion", "events.k8s.io/v1"},
    {"kind", "Event"},
    {"regarding.name", "p"},
    {"note", "it runs"},
    {"deprecatedSource.host", "n"},
    {"deprecatedFirstTimestamp", "2026-01-01T00:00:00Z"},
    {"deprecatedLastTimestamp", "2026-01-01T00:01:00Z"},
    {"deprecatedCount", "3"},
    {"reportingController", "kubelet"},
    {"reportingInstance", "n"},
    {"reason", "Started"},
    {"type", "Normal"},
    {"related.name", "n"},
    {"involvedObject", ""},
    {"message", ""},
    {"source", ""},
    {"count", ""},
    {"firstTimestamp", ""},
    {"lastTimestamp", ""},
    {"reportingComponent", ""},
    {NULL, NULL},
};

static const struct expectation new_as_core[] = {
    {"apiVersion", "v1"},
    {"kind", "Event"},
    {"involvedObject.name", "q"},
    {"message", "it ended"},
    {"reportingComponent", "example.com/c"},
    {"reportingInstance", "c-1"},
    {"action", "Kill"},
    {"eventTime", "2026-01-01T00:00:00.000001Z"},
    {"series.count", "2"},
    {"regarding", ""},
    {"note", ""},
    {"reportingController", ""},
    {NULL, NULL},
};

static void each_shape_is_read_in_the_other(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call(&f, "POST", CORE, OLD_EVENT), 201);
    expect_all(f.doc, old_as_core);
    assert_int_equal(fixture_call(&f, "GET", EVENTS "/old", NULL), 200);
    expect_all(f.doc, old_as_new);
    assert_int_equal(fixture_call(&f, "POST", EVENTS, NEW_EVENT), 201);
    assert_string_equal(answer(&f, "note"), "it ended");
    assert_int_equal(fixture_call(&f, "GET", CORE "/new", NULL), 200);
    expect_all(f.doc, new_as_core);

    assert_int_equal(fixture_call(&f, "GET", "/apis/events.k8s.io/v1/events", NULL), 200);
    assert_string_equal(answer(&f, "kind"), "EventList");
    assert_string_equal(answer(&f, "apiVersion"), "events.k8s.io/v1");
    expect_all(doc_at(f.doc, "items.1"), old_as_new);
    assert_int_equal(fixture_call(&f, "GET", CORE, NULL), 200);
    expect_all(doc_at(f.doc, "items.0"), new_as_core);
    fixture_done(&f);
}

static void what_is_written_back_is_what_was_read(void **state)
{
    (void)state;
    static const char *const ways[][2] = {{CORE "/old", EVENTS "/old"},
                                          {EVENTS "/old", CORE "/old"}};
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CORE, OLD_EVENT);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fixture_call(&f, "GET", ways[i][0], NULL), 200);
        muster_auto(doc) json_t *before = json_incref(f.doc);
        assert_int_equal(fixture_call(&f, "GET", ways[i][1], NULL), 200);
        muster_auto(free) char *text = json_dumps(f.doc, 0);
        assert_int_equal(fixture_call(&f, "PUT", ways[i][1], text), 200);
        assert_int_equal(fixture_call(&f, "GET", ways[i][0], NULL), 200);
        assert_true(json_equal(f.doc, before)); /* also its resourceVersion */
    }
    fixture_done(&f);
}

static void a_patch_is_in_the_shape_that_is_asked(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", EVENTS, NEW_EVENT);
    const char *patch = "{'note':'anew','message':'of no meaning here','series':{'count':5}}";
    assert_int_equal(fixture_call_as(&f, "PATCH", EVENTS "/new", patch,
                                     "application/strategic-merge-patch+json", NULL),
                     200);
    assert_string_equal(answer(&f, "note"), "anew");
    fixture_call(&f, "GET", CORE "/new", NULL);
    assert_string_equal(answer(&f, "message"), "anew");
    assert_int_equal(doc_int(f.doc, "series.count", 0), 5);
    assert_int_equal(fixture_call_as(&f, "PATCH", EVENTS "/new",
                                     "[{'op':'replace','path':'/regarding/name','value':'r'}]",
                                     "application/json-patch+json", NULL),
                     200);
    fixture_call(&f, "GET", CORE "/new", NULL);
    assert_string_equal(answer(&f, "involvedObject.name"), "r");
    fixture_done(&f);
}

static void an_event_of_the_new_group_needs_its_fields(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call(&f, "POST", EVENTS,
                                  "{'metadata':{'name':'a'},'type':'Odd','deprecatedCount':1,"
                                  "'deprecatedFirstTimestamp':'2026-01-01T00:00:00Z'}"),
                     422);
    assert_non_null(strstr(answer(&f, "message"), "Event.events.k8s.io \"a\" is invalid: ["));
    static const char *const said[] = {"eventTime: Required value",
                                       "reportingController: Required value",
                                       "reportingInstance: Required value",
                                       "action: Required value",
                                       "reason: Required value",
                                       "type: must be Normal or Warning",
                                       "deprecatedCount: needs to be unset",
                                       "deprecatedFirstTimestamp: needs to be unset"};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        if (!strstr(answer(&f, "message"), said[i])) {
            fail_msg("no \"%s\" in: %s", said[i], answer(&f, "message"));
        }
    }
    assert_string_equal(answer(&f, "details.causes.0.field"), "eventTime");
    assert_string_equal(answer(&f, "details.causes.0.reason"), "FieldValueRequired");
    assert_string_equal(answer(&f, "details.causes.5.field"), "type");
    assert_string_equal(answer(&f, "details.causes.5.reason"), "FieldValueInvalid");
    assert_int_equal(fixture_call(&f, "POST", EVENTS, OLD_EVENT), 400);
    assert_non_null(strstr(answer(&f, "message"), "apiVersion"));
    fixture_done(&f);
}

static void fields_are_selected_by_their_names(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CORE, OLD_EVENT);
    fixture_call(&f, "POST", EVENTS, NEW_EVENT);
    fixture_call(&f, "GET", EVENTS "?fieldSelector=regarding.name=q,reason!=Started", NULL);
    assert_int_equal(json_array_size(doc_at(f.doc, "items")), 1);
    assert_string_equal(answer(&f, "items.0.metadata.name"), "new");
    fixture_call(&f, "GET", EVENTS "?fieldSelector=reportingController=kubelet", NULL);
    assert_string_equal(answer(&f, "items.0.metadata.name"), "old");
    assert_int_equal(fixture_call(&f, "GET", EVENTS "?fieldSelector=involvedObject.name=q", NULL),
                     400);
    fixture_done(&f);
}

/* Returns line `index` of a watch. */
static json_t *line(struct fake_reply *watch, int index)
{
    const char *at = buf_str(&watch->bytes);
    for (; index > 0 && at; index--) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    return at ? json_loads(at, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}

static void a_watch_shows_its_shape(void **state)
{
    (void)state;
    struct fixture f;
    struct fake_reply watch;
    fixture_init(&f, NULL);
    fake_init(&watch);
    fixture_call(&f, "POST", CORE, OLD_EVENT);
    fixture_send(
        &f, &watch, "GET",
        EVENTS
        "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        NULL, NULL, NULL);
    fixture_call(&f, "DELETE", CORE "/old", NULL);
    muster_auto(doc) json_t *added = line(&watch, 0);
    muster_auto(doc) json_t *mark = line(&watch, 1);
    muster_auto(doc) json_t *deleted = line(&watch, 2);
    assert_string_equal(doc_text(added, "type", ""), "ADDED");
    expect_all(doc_at(added, "object"), old_as_new);
    assert_string_equal(doc_text(mark, "object.apiVersion", ""), "events.k8s.io/v1");
    assert_string_equal(doc_text(deleted, "type", ""), "DELETED");
    expect_all(doc_at(deleted, "object"), old_as_new);
    fixture_done(&f);
    fake_done(&watch);
}

static void a_table_has_the_columns_of_events(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CORE, OLD_EVENT);
    fixture_call_as(&f, "GET", EVENTS "?includeObject=Object", NULL, NULL,
                    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
    assert_string_equal(answer(&f, "rows.0.cells.2"), "Started");
    assert_string_equal(answer(&f, "rows.0.cells.3"), "pod/p");
    expect_all(doc_at(f.doc, "rows.0.object"), old_as_new);
    fixture_done(&f);
}

static void an_event_deleted_in_one_group_is_gone_in_both(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CORE, OLD_EVENT);
    fixture_call(&f, "POST", EVENTS, NEW_EVENT);
    assert_int_equal(fixture_call(&f, "DELETE", EVENTS "/new", NULL), 200);
    assert_string_equal(answer(&f, "details.group"), "events.k8s.io");
    assert_int_equal(fixture_call(&f, "GET", CORE "/new", NULL), 404);
    assert_int_equal(fixture_call(&f, "GET", EVENTS "/new", NULL), 404);
    assert_non_null(strstr(answer(&f, "message"), "events.events.k8s.io \"new\" not found"));
    assert_int_equal(fixture_call(&f, "DELETE", EVENTS, NULL), 200);
    expect_all(doc_at(f.doc, "items.0"), old_as_new);
    fixture_call(&f, "GET", CORE, NULL);
    assert_int_equal(json_array_size(doc_at(f.doc, "items")), 0);
    fixture_done(&f);
}

static void discovery_names_both_groups(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call(&f, "GET", "/apis/events.k8s.io/v1", NULL), 200);
    assert_string_equal(answer(&f, "groupVersion"), "events.k8s.io/v1");
    assert_string_equal(answer(&f, "resources.0.kind"), "Event");
    assert_null(doc_at(f.doc, "resources.0.categories"));
    assert_int_equal(fixture_call(&f, "GET", "/apis/events.k8s.io", NULL), 200);
    assert_string_equal(answer(&f, "kind"), "APIGroup");
    assert_int_equal(fixture_call(&f, "GET", "/apis", NULL), 200);
    assert_string_equal(answer(&f, "groups.1.name"), "events.k8s.io");
    assert_int_equal(fixture_call(&f, "GET", "/openapi/v3/apis/events.k8s.io/v1", NULL), 200);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_shape_is_read_in_the_other),
        cmocka_unit_test(what_is_written_back_is_what_was_read),
        cmocka_unit_test(a_patch_is_in_the_shape_that_is_asked),
        cmocka_unit_test(an_event_of_the_new_group_needs_its_fields),
        cmocka_unit_test(fields_are_selected_by_their_names),
        cmocka_unit_test(a_watch_shows_its_shape),
        cmocka_unit_test(a_table_has_the_columns_of_events),
        cmocka_unit_test(an_event_deleted_in_one_group_is_gone_in_both),
        cmocka_unit_test(discovery_names_both_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
