/* See wire/request.h. */
#include "kube/wire/request.h"

#include "base/buf.h"
#include "base/doc.h"
#include "base/err.h"

#include <ctype.h>
#include <stdlib.h>

enum { PATH_BYTES_MAX = 64 << 10, PAGE_ITEMS = 500 };

/* Adds the text; unreserved characters stay (RFC 3986), all others are percent-encoded. */
static void add_encoded(struct buf *out, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (isalnum(*at) || strchr("-._~", *at)) {
            buf_add(out, at, 1);
        } else {
            buf_format(out, "%%%02X", *at);
        }
    }
}

static void add_parameter(struct buf *out, const char *name, const char *value)
{
    if (value && *value) {
        buf_format(out, "%c%s=", memchr(out->data, '?', out->used) ? '&' : '?', name);
        add_encoded(out, value);
    }
}

static void add_step(struct buf *out, const char *step)
{
    if (step && *step) {
        buf_text(out, "/");
        add_encoded(out, step);
    }
}

static void add_collection(struct buf *out, const struct cluster_resource *resource,
                           const char *namespace)
{
    if (resource->version) {
        buf_text(out, *resource->group ? "/apis" : "/api");
        add_step(out, resource->group);
        add_step(out, resource->version);
    }
    if (resource->namespaced && namespace && *namespace) {
        buf_text(out, "/namespaces");
        add_step(out, namespace);
    }
    add_step(out, resource->plural);
}

static void add_query(struct buf *out, const struct cluster_request *q)
{
    char limit[24];
    add_parameter(out, "labelSelector", q->labels);
    add_parameter(out, "fieldSelector", q->fields);
    if (q->limit > 0) {
        snprintf(limit, sizeof limit, "%lld", (long long)q->limit);
        add_parameter(out, "limit", limit);
    }
    add_parameter(out, "continue", q->next);
    bool reads = q->verb == CLUSTER_GET || q->verb == CLUSTER_LIST;
    if (q->any_version && reads && !(q->next && *q->next)) {
        add_parameter(out, "resourceVersion", "0");
    }
    if (!reads && q->verb != CLUSTER_DELETE) {
        add_parameter(out, "fieldManager", q->field_manager);
        add_parameter(out, "force", q->force ? "true" : NULL);
    }
}

static json_t *delete_options(const struct cluster_request *q)
{
    static const char *const policies[] = {NULL, "Background", "Foreground", "Orphan"};
    json_t *options = json_pack("{s:s, s:s}", "kind", "DeleteOptions", "apiVersion", "v1");
    bool failed = !options;
    if (!failed && q->grace_s >= 0) {
        failed = json_object_set_new(options, "gracePeriodSeconds", json_integer(q->grace_s)) < 0;
    }
    if (!failed && policies[q->propagation]) {
        failed = json_object_set_new(options, "propagationPolicy",
                                     json_string(policies[q->propagation])) < 0;
    }
    const char *uid = q->uid && *q->uid ? q->uid : NULL;
    const char *version = q->version && *q->version ? q->version : NULL;
    if (!failed && (uid || version)) {
        json_t *conditions = json_pack("{s:s*, s:s*}", "uid", uid, "resourceVersion", version);
        failed = json_object_set_new(options, "preconditions", conditions) < 0;
    }
    if (failed) {
        json_decref(options);
        return NULL;
    }
    return options;
}

static int make_body(const struct cluster_request *q, struct wire_request *ret,
                     struct muster_err *err)
{
    static const char *const patches[] = {
        [CLUSTER_PATCH_MERGE] = "application/merge-patch+json",
        [CLUSTER_PATCH_STRATEGIC] = "application/strategic-merge-patch+json",
        [CLUSTER_PATCH_JSON] = "application/json-patch+json",
        [CLUSTER_PATCH_APPLY] = "application/apply-patch+yaml",
    };
    if (ret->only_reads) {
        return 0;
    }
    /* A delete always has a body: without one, curl might send it twice (see transfer.c). */
    json_t *body = q->verb == CLUSTER_DELETE ? delete_options(q) : json_incref(q->body);
    ret->body = body ? doc_print(body) : NULL;
    json_decref(body);
    if (!ret->body) {
        return err_no_memory(err);
    }
    ret->body_bytes = strlen(ret->body);
    ret->content_type = q->verb == CLUSTER_PATCH ? patches[q->patch] : "application/json";
    return 0;
}

int wire_request_make(const struct cluster_request *request, struct wire_request *ret,
                      struct muster_err *err)
{
    static const char *const methods[] = {
        [CLUSTER_GET] = "GET",     [CLUSTER_LIST] = "GET",    [CLUSTER_CREATE] = "POST",
        [CLUSTER_REPLACE] = "PUT", [CLUSTER_PATCH] = "PATCH", [CLUSTER_DELETE] = "DELETE",
    };
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    bool has_name =
        request->verb != CLUSTER_LIST && (request->verb != CLUSTER_CREATE || request->subresource);
    add_collection(&path, request->resource, request->namespace);
    if (has_name) {
        add_step(&path, request->name);
        add_step(&path, request->subresource);
    }
    add_query(&path, request);
    struct wire_request made = {.method = methods[request->verb], .path = buf_steal(&path)};
    made.only_reads = request->verb == CLUSTER_GET || request->verb == CLUSTER_LIST;
    if (!made.path) {
        return muster_fail(err, MUSTER_ETOOBIG, "the request's path is too long");
    }
    int r = make_body(request, &made, err);
    if (r < 0) {
        wire_request_done(&made);
        return r;
    }
    *ret = made;
    return 0;
}

void wire_request_done(struct wire_request *request)
{
    free(request->path);
    free(request->body);
    *request = (struct wire_request){0};
}

static void add_number(struct buf *out, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    add_parameter(out, name, text);
}

char *wire_follow_path(const struct cluster_scope *scope, enum wire_follow how, const char *from,
                       int64_t timeout_s)
{
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    add_collection(&path, scope->resource, scope->namespace);
    add_parameter(&path, "labelSelector", scope->labels);
    add_parameter(&path, "fieldSelector", scope->fields);
    if (how == WIRE_PAGE) {
        add_number(&path, "limit", PAGE_ITEMS);
        add_parameter(&path, "continue", from);
        return buf_steal(&path);
    }
    add_parameter(&path, "watch", "true");
    add_parameter(&path, "allowWatchBookmarks", "true");
    add_number(&path, "timeoutSeconds", timeout_s);
    if (how == WIRE_STREAM) {
        add_parameter(&path, "sendInitialEvents", "true");
        add_parameter(&path, "resourceVersionMatch", "NotOlderThan");
    } else {
        add_parameter(&path, "resourceVersion", from);
    }
    return buf_steal(&path);
}
