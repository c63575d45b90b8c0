/* Requests as paths and bodies, answers as codes, and the state machine of a watch. */
#include "base/doc.h"
#include "base/testing/test.h"
#include "kube/wire/answer.h"
#include "kube/wire/follow.h"
#include "kube/wire/request.h"

#include <stdlib.h>

static const struct cluster_resource pods = {"", "v1", "pods", "Pod", true};
static const struct cluster_resource nodes = {"", "v1", "nodes", "Node", false};
static const struct cluster_resource jobs = {"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob",
                                             true};

static void sends(struct cluster_request q, const char *method, const char *path, const char *body)
{
    struct wire_request made;
    struct muster_err err = MUSTER_ERR_INIT;
    json_t *object = json_pack("{s:s}", "kind", "x");
    bool has_body = q.verb != CLUSTER_GET && q.verb != CLUSTER_LIST && q.verb != CLUSTER_DELETE;
    q.body = has_body ? object : NULL;
    assert_int_equal(wire_request_make(&q, &made, &err), 0);
    assert_string_equal(made.method, method);
    assert_string_equal(made.path, path);
    assert_string_equal(made.body ? made.body : "", body);
    assert_int_equal(made.body_bytes, strlen(body));
    wire_request_done(&made);
    json_decref(object);
}

static void requests_become_paths(void **state)
{
    (void)state;
    sends(
        (struct cluster_request){
            .verb = CLUSTER_GET, .resource = &pods, .namespace = "a", .name = "b/../c?"},
        "GET", "/api/v1/namespaces/a/pods/b%2F..%2Fc%3F", "");
    sends((struct cluster_request){.verb = CLUSTER_GET,
                                   .resource = &nodes,
                                   .namespace = "a",
                                   .name = "n",
                                   .any_version = true},
          "GET", "/api/v1/nodes/n?resourceVersion=0", "");
    static const struct cluster_resource server = {"", NULL, "version", "Info", false};
    sends((struct cluster_request){.verb = CLUSTER_GET, .resource = &server}, "GET", "/version",
          "");
    sends(
        (struct cluster_request){.verb = CLUSTER_LIST,
                                 .resource = &jobs,
                                 .labels = "a=b,c!=d",
                                 .fields = "x=y",
                                 .limit = 5,
                                 .next = "t+/="},
        "GET",
        "/apis/kubeflow.org/v1/pytorchjobs?labelSelector=a%3Db%2Cc%21%3Dd&fieldSelector=x%3Dy&limit=5&continue=t%2B%2F%3D",
        "");
    sends((struct cluster_request){.verb = CLUSTER_CREATE,
                                   .resource = &pods,
                                   .namespace = "a",
                                   .name = "b",
                                   .field_manager = "me"},
          "POST", "/api/v1/namespaces/a/pods?fieldManager=me", "{\"kind\":\"x\"}");
    sends((struct cluster_request){.verb = CLUSTER_CREATE,
                                   .resource = &pods,
                                   .namespace = "a",
                                   .name = "b",
                                   .subresource = "eviction"},
          "POST", "/api/v1/namespaces/a/pods/b/eviction", "{\"kind\":\"x\"}");
    sends((struct cluster_request){.verb = CLUSTER_REPLACE,
                                   .resource = &jobs,
                                   .namespace = "a",
                                   .name = "b",
                                   .subresource = "status"},
          "PUT", "/apis/kubeflow.org/v1/namespaces/a/pytorchjobs/b/status", "{\"kind\":\"x\"}");
    sends((struct cluster_request){.verb = CLUSTER_PATCH,
                                   .patch = CLUSTER_PATCH_APPLY,
                                   .resource = &pods,
                                   .namespace = "a",
                                   .name = "b",
                                   .field_manager = "me",
                                   .force = true},
          "PATCH", "/api/v1/namespaces/a/pods/b?fieldManager=me&force=true", "{\"kind\":\"x\"}");
}

/* A delete has a body even without conditions: curl would repeat a delete without a body. */
static void deletes_say_their_conditions(void **state)
{
    (void)state;
    struct cluster_request q = {.verb = CLUSTER_DELETE,
                                .resource = &pods,
                                .namespace = "a",
                                .name = "b",
                                .grace_s = CLUSTER_GRACE_DEFAULT};
    sends(q, "DELETE", "/api/v1/namespaces/a/pods/b",
          "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}");
    q.uid = "u";
    q.version = "7";
    q.grace_s = 0;
    q.propagation = CLUSTER_PROPAGATION_FOREGROUND;
    sends(
        q, "DELETE", "/api/v1/namespaces/a/pods/b",
        "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0,\"propagationPolicy\":\"Foreground\","
        "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}}");
    q.version = "";
    q.grace_s = CLUSTER_GRACE_DEFAULT;
    q.propagation = CLUSTER_PROPAGATION_DEFAULT;
    sends(q, "DELETE", "/api/v1/namespaces/a/pods/b",
          "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":{\"uid\":\"u\"}}");
}

static void answers(long http_status, const char *body, int code, bool unsure)
{
    struct cluster_answer a;
    wire_answer(http_status, body, strlen(body), true, &a);
    assert_int_equal(a.code, code);
    assert_int_equal(a.unsure, unsure);
    assert_true(code == 0 || *a.message);
    json_decref(a.object);
    wire_answer(http_status, body, strlen(body), false, &a);
    assert_false(a.unsure); /* reading changes nothing */
    json_decref(a.object);
}

#define STATUS(reason) "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"m\"}"

static void answers_become_codes(void **state)
{
    (void)state;
    answers(201, "{\"kind\":\"Pod\"}", 0, false);
    answers(200, "[]", MUSTER_EPROTO, true);
    answers(200, "", MUSTER_EPROTO, true);
    answers(302, "", MUSTER_EPROTO, false);
    answers(409, STATUS("AlreadyExists"), MUSTER_EEXIST, false);
    answers(409, STATUS("Conflict"), MUSTER_ECONFLICT, false);
    answers(409, "oops", MUSTER_ECONFLICT, false);
    answers(410, STATUS("Expired"), MUSTER_EGONE, false);
    answers(422, STATUS("Invalid"), MUSTER_EINVAL, false);
    answers(429, STATUS("TooManyRequests"), MUSTER_EAGAIN, false);
    answers(500, STATUS("InternalError"), MUSTER_EUNAVAIL, true);
    answers(500, STATUS("ServerTimeout"), MUSTER_ETIMEDOUT, true);
    answers(502, "<html>", MUSTER_EUNAVAIL, true);
    answers(503, STATUS("ServiceUnavailable"), MUSTER_EUNAVAIL, false);
    answers(503, "<html>", MUSTER_EUNAVAIL, true);
    answers(504, STATUS("Timeout"), MUSTER_ETIMEDOUT, true);
}

static char *path_of(const struct watch_follow *f)
{
    static const struct cluster_scope scope = {
        .resource = &pods, .namespace = "a", .labels = "l=1"};
    static char text[300];
    char *path = wire_follow_path(&scope, f->how, watch_follow_from(f), 400);
    snprintf(text, sizeof text, "%s", strchr(path, '?'));
    free(path);
    return text;
}

static enum follow_news event(struct watch_follow *f, enum watch_event_type type,
                              const char *version, bool end)
{
    json_t *object = type == WATCH_ERROR
                         ? json_pack("{s:i}", "code", (int)strtol(version, NULL, 10))
                         : json_object();
    const struct watch_event e = {type, object, version, end};
    enum follow_news news = watch_follow_event(f, &e);
    json_decref(object);
    return news;
}

#define WATCHES "&watch=true&allowWatchBookmarks=true&timeoutSeconds=400"

static void a_stream_lists_then_follows(void **state)
{
    (void)state;
    struct watch_follow f;
    watch_follow_init(&f);
    assert_string_equal(path_of(&f), "?labelSelector=l%3D1" WATCHES
                                     "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    assert_true(watch_follow_begins(&f));
    assert_false(watch_follow_begins(&f));
    assert_int_equal(event(&f, WATCH_ADDED, "3", false), FOLLOW_OBJECT);
    assert_int_equal(event(&f, WATCH_BOOKMARK, "4", false), FOLLOW_NOTHING);
    /* The stream broke off before its end: the listing is incomplete. */
    assert_true(watch_follow_end(&f, 200, false, 100000));
    assert_int_equal(f.how, WIRE_STREAM);
    assert_true(watch_follow_begins(&f));
    assert_int_equal(event(&f, WATCH_ADDED, "3", false), FOLLOW_OBJECT);
    assert_int_equal(event(&f, WATCH_BOOKMARK, "5", true), FOLLOW_SYNCED);
    assert_int_equal(event(&f, WATCH_DELETED, "6", false), FOLLOW_GONE);
    assert_int_equal(event(&f, WATCH_BOOKMARK, "9", false), FOLLOW_BOOKMARK);
    assert_false(watch_follow_end(&f, 200, true, 100000));
    assert_string_equal(path_of(&f), "?labelSelector=l%3D1" WATCHES "&resourceVersion=9");
    assert_false(watch_follow_begins(&f));
    /* If a server ends each watch at once, the next one waits. */
    assert_true(watch_follow_end(&f, 200, true, 10));
    assert_int_equal(f.failures, 1);
    assert_int_equal(event(&f, WATCH_MODIFIED, "10", false), FOLLOW_OBJECT);
    assert_int_equal(f.failures, 0);
    watch_follow_done(&f);
}

static void a_forgotten_version_is_listed_anew(void **state)
{
    (void)state;
    struct watch_follow f;
    watch_follow_init(&f);
    (void)watch_follow_begins(&f);
    assert_int_equal(event(&f, WATCH_BOOKMARK, "5", true), FOLLOW_SYNCED);
    assert_int_equal(event(&f, WATCH_ERROR, "500", false), FOLLOW_BROKEN);
    assert_int_equal(f.how, WIRE_WATCH);
    assert_int_equal(event(&f, WATCH_ERROR, "410", false), FOLLOW_BROKEN);
    assert_int_equal(f.how, WIRE_STREAM);
    assert_int_equal(f.failures, 2);
    assert_true(watch_follow_begins(&f));
    assert_int_equal(event(&f, WATCH_BOOKMARK, "9", true), FOLLOW_SYNCED);
    assert_true(watch_follow_end(&f, 410, true, 3));
    assert_int_equal(f.how, WIRE_STREAM);
    watch_follow_done(&f);
}

static void give_page(struct watch_follow *f, const char *next, enum follow_news expected)
{
    enum follow_news news;
    json_t *list =
        json_pack("{s:{s:s, s:s}}", "metadata", "resourceVersion", "33", "continue", next);
    assert_int_equal(watch_follow_page(f, list, &news), 0);
    assert_int_equal(news, expected);
    json_decref(list);
}

static void pages_where_lists_are_not_streamed(void **state)
{
    (void)state;
    struct watch_follow f;
    watch_follow_init(&f);
    assert_false(watch_follow_end(&f, 422, true, 1));
    assert_string_equal(path_of(&f), "?labelSelector=l%3D1&limit=500");
    assert_true(watch_follow_begins(&f));
    give_page(&f, "t1", FOLLOW_NOTHING);
    assert_false(watch_follow_end(&f, 200, true, 1));
    assert_string_equal(path_of(&f), "?labelSelector=l%3D1&limit=500&continue=t1");
    assert_false(watch_follow_begins(&f));
    assert_true(watch_follow_end(&f, 410, true, 1)); /* the token is too old: first page again */
    assert_string_equal(path_of(&f), "?labelSelector=l%3D1&limit=500");
    assert_true(watch_follow_begins(&f));
    give_page(&f, "t2", FOLLOW_NOTHING);
    assert_true(watch_follow_end(&f, 0, false, 1)); /* no answer: request the same page again */
    assert_string_equal(path_of(&f), "?labelSelector=l%3D1&limit=500&continue=t2");
    give_page(&f, "", FOLLOW_SYNCED);
    assert_string_equal(path_of(&f), "?labelSelector=l%3D1" WATCHES "&resourceVersion=33");
    assert_true(watch_follow_end(&f, 410, true, 1));
    assert_int_equal(f.how, WIRE_PAGE);
    watch_follow_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_become_paths),
        cmocka_unit_test(deletes_say_their_conditions),
        cmocka_unit_test(answers_become_codes),
        cmocka_unit_test(a_stream_lists_then_follows),
        cmocka_unit_test(a_forgotten_version_is_listed_anew),
        cmocka_unit_test(pages_where_lists_are_not_streamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
