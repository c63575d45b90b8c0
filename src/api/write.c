/* Create, update, delete, and the way every changed object takes: read, admit, store, answer.
 *
 * Layer: services.
 */
#include "api/fields.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARNING_BYTES_MAX = 512 };

static int out_of_memory(struct muster_err *err)
{
    return muster_fail(err, MUSTER_ENOMEM, "out of memory");
}

/* ---- answering ---- */

static void word_warning(const struct job_problem *p, struct buf *out)
{
    if (p->strict) {
        fields_word(p, out);
    } else {
        buf_format(out, "%s%s%s", p->path, *p->path ? ": " : "", p->message);
    }
    if (p->hint) {
        buf_format(out, " (%s)", p->hint);
    }
}

/* RFC 9111: 299 - "text", with quotes and backslashes escaped. */
static void send_warning(struct api_call *call, const struct job_problem *p)
{
    struct buf text;
    struct buf words;
    buf_init(&text, WARNING_BYTES_MAX);
    buf_init(&words, WARNING_BYTES_MAX);
    word_warning(p, &words);
    buf_text(&text, "299 - \"");
    for (const char *c = buf_str(&words); *c; c++) {
        buf_text(&text, *c == '"' || *c == '\\' ? "\\" : "");
        buf_add(&text, c, 1);
    }
    buf_text(&text, "\"");
    if (!buf_failed(&text) && !buf_failed(&words)) {
        http_reply_header(call->reply, "Warning", buf_str(&text));
    }
    buf_done(&text);
    buf_done(&words);
}

static void send_warnings(struct api_call *call)
{
    size_t sent = 0;
    for (size_t i = 0; i < call->problems.count && sent < WARNINGS_MAX; i++) {
        if (fields_warned(call, &call->problems.list[i])) {
            send_warning(call, &call->problems.list[i]);
            sent++;
        }
    }
}

static int send_written(struct api_call *call, int status, json_t *object, struct muster_err *err)
{
    send_warnings(call);
    return call_send_object(call, status, object, err);
}

/* ---- transactions: a dry run does everything and takes it back ---- */

static int finish(struct api_call *call, int r, struct muster_err *err)
{
    if (r < 0 || call->dry_run) {
        store_rollback(call->api->store);
        return r;
    }
    return store_commit(call->api->store, err);
}

/* ---- what the body says it is ---- */

static int require_same(const char *what, const char *given, const char *wanted,
                        struct muster_err *err)
{
    if (*given && strcmp(given, wanted) != 0) {
        return muster_fail(err, MUSTER_EINVAL,
                           "the %s of the provided object does not match the %s of the request: "
                           "\"%.100s\", not \"%.100s\"",
                           what, what, given, wanted);
    }
    return 0;
}

static int check_identity(struct api_call *call, json_t *object, struct muster_err *err)
{
    const struct route *route = &call->route;
    if (!json_is_object(object)) {
        return muster_fail(err, MUSTER_EINVAL, "the body must be a JSON object of kind %s",
                           route->resource->kind);
    }
    int r = require_same("kind", doc_text(object, "kind", ""), route->resource->kind, err);
    if (r == 0) {
        r = require_same("apiVersion", doc_text(object, "apiVersion", ""),
                         resource_api_version(route->resource), err);
    }
    if (r == 0) {
        r = require_same("namespace", doc_text(object, "metadata.namespace", ""), route->namespace,
                         err);
    }
    if (r == 0 && *route->name) {
        r = require_same("name", doc_text(object, "metadata.name", ""), route->name, err);
    }
    return r;
}

/* Fills in what the path says. */
static int complete_identity(struct api_call *call, json_t *object, struct muster_err *err)
{
    const struct route *route = &call->route;
    bool failed =
        doc_set_text(object, "kind", route->resource->kind) < 0 ||
        doc_set_text(object, "apiVersion", resource_api_version(route->resource)) < 0 ||
        (*route->namespace && doc_set_text(object, "metadata.namespace", route->namespace) < 0) ||
        (*route->name && doc_set_text(object, "metadata.name", route->name) < 0);
    return failed ? out_of_memory(err) : 0;
}

/* ---- create ---- */

/* On a laptop a namespace is a word in a file, not something an administrator hands out. */
static int ensure_namespace(struct api_call *call, struct muster_err *err)
{
    if (!*call->route.namespace) {
        return 0;
    }
    muster_auto(doc) json_t *namespace =
        json_pack("{s:s, s:s, s:{s:s}, s:{s:s}}", "apiVersion", "v1", "kind", "Namespace",
                  "metadata", "name", call->route.namespace, "status", "phase", "Active");
    if (!namespace) {
        return out_of_memory(err);
    }
    int r = store_create(call->api->store, "namespaces", namespace, NULL, err);
    return r == MUSTER_EEXIST ? 0 : r;
}

/* ?musterReplaceFinished=true: a finished job of the same name makes room, a live one does not. */
static int make_room(struct api_call *call, struct muster_err *err)
{
    if (!http_query_bool(call->request, "musterReplaceFinished")) {
        return 0;
    }
    muster_auto(doc) json_t *old = NULL;
    int r = store_get(call->api->store, call_key(call), &old, err);
    if (r < 0 || !job_is_finished(old)) {
        return r == MUSTER_ENOENT ? 0 : r;
    }
    return store_delete(call->api->store, call_key(call), NULL, NULL, err);
}

static int create_in_store(struct api_call *call, json_t **ret, struct muster_err *err)
{
    struct store *store = call->api->store;
    int r = store_begin(store, err);
    if (r < 0) {
        return r;
    }
    r = ensure_namespace(call, err);
    if (r == 0 && (r = make_room(call, err)) == 0) {
        r = store_create(store, call->route.resource->plural, call->body, ret, err);
    }
    return finish(call, r, err);
}

/* What the controller must have for it (GPUs, volumes, a held lease). */
static int ask_machine(struct api_call *call, struct muster_err *err)
{
    const struct api_hooks *hooks = &call->api->hooks;
    return hooks->admit ? hooks->admit(hooks->arg, call->route.resource->plural, call->body, err)
                        : 0;
}

int verb_create(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *object = NULL;
    if (call->route.resource->namespaced && !*call->route.namespace) {
        return muster_fail(err, MUSTER_EINVAL, "an empty namespace may not be set during creation");
    }
    int r = check_identity(call, call->body, err);
    if (r < 0) {
        return r;
    }
    (void)snprintf(call->route.name, sizeof call->route.name, "%s",
                   doc_text(call->body, "metadata.name", ""));
    if ((r = complete_identity(call, call->body, err)) < 0 ||
        (r = admit(call, NULL, call->body, err)) < 0 || (r = ask_machine(call, err)) < 0) {
        return r;
    }
    /* Where status is a subresource, what a client writes there at creation is dropped; pods and
     * claims were given their phase by admit. */
    if (call->route.resource->subresources & RESOURCE_SCALE) {
        json_object_del(call->body, "status");
    }
    r = create_in_store(call, &object, err);
    return r < 0 ? r : send_written(call, 201, object, err);
}

/* ---- update ---- */

static enum store_part part_of(const struct api_call *call)
{
    if (strcmp(call->route.subresource, "status") == 0) {
        return STORE_STATUS_ONLY;
    }
    return call->route.resource->subresources & RESOURCE_STATUS ? STORE_BUT_STATUS : STORE_ALL;
}

int call_store_update(struct api_call *call, const json_t *before, json_t *object,
                      struct muster_err *err)
{
    muster_auto(doc) json_t *stored = NULL;
    struct store *store = call->api->store;
    enum store_part part = part_of(call);
    int r = check_identity(call, object, err);
    if (r < 0 || (r = complete_identity(call, object, err)) < 0) {
        return r;
    }
    if (part != STORE_STATUS_ONLY && (r = admit(call, before, object, err)) < 0) {
        return r;
    }
    if ((r = store_begin(store, err)) < 0) {
        return r;
    }
    r = store_update(store, call->route.resource->plural, object, part, &stored, err);
    r = finish(call, r, err);
    return r < 0 ? r : send_written(call, 200, stored, err);
}

int verb_update(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *before = NULL;
    int r = check_identity(call, call->body, err);
    if (r < 0 || (r = store_get(call->api->store, call_key(call), &before, err)) < 0) {
        return r;
    }
    return call_store_update(call, before, call->body, err);
}

/* ---- delete ---- */

static int read_grace(const struct api_call *call, int64_t *ret, struct muster_err *err)
{
    const char *text = http_query(call->request, "gracePeriodSeconds");
    int64_t grace_s = doc_int(call->body, "gracePeriodSeconds", STORE_GRACE_DEFAULT);
    if (text && *text) {
        char *end;
        grace_s = strtoll(text, &end, 10);
        if (*end) {
            return muster_fail(err, MUSTER_EINVAL, "gracePeriodSeconds must be a number: %.40s",
                               text);
        }
    }
    *ret = grace_s < 0 ? STORE_GRACE_DEFAULT : grace_s;
    return 0;
}

/* Query parameters and a DeleteOptions body say the same things. */
static int read_options(const struct api_call *call, struct store_delete_options *ret,
                        struct muster_err *err)
{
    const char *policy = http_query(call->request, "propagationPolicy");
    if (!policy) {
        policy = doc_text(call->body, "propagationPolicy", "Background");
    }
    bool orphan = strcmp(policy, "Orphan") == 0 || doc_bool(call->body, "orphanDependents", false);
    if (!orphan && strcmp(policy, "Background") != 0 && strcmp(policy, "Foreground") != 0) {
        return muster_fail(err, MUSTER_EINVAL,
                           "propagationPolicy must be Background, Foreground or Orphan, not %.40s",
                           policy);
    }
    *ret = (struct store_delete_options){
        .uid = doc_text(call->body, "preconditions.uid", NULL),
        .version = doc_text(call->body, "preconditions.resourceVersion", NULL),
        .dependents = orphan ? STORE_ORPHAN : STORE_CASCADE,
    };
    return read_grace(call, &ret->grace_s, err);
}

/* Everything in it goes with a namespace. */
static int empty_namespace(struct api_call *call, struct muster_err *err)
{
    for (size_t i = 0; i < resource_count; i++) {
        const struct store_query query = {.resource = resources[i].plural,
                                          .namespace = call->route.name};
        struct store_page page;
        int r = resources[i].namespaced ? store_list(call->api->store, &query, &page, err) : 1;
        if (r != 0) {
            if (r < 0) {
                return r;
            }
            continue;
        }
        size_t n;
        json_t *item;
        json_array_foreach (page.items, n, item) {
            struct store_key key = {resources[i].plural, call->route.name,
                                    doc_text(item, "metadata.name", "")};
            r = r < 0 ? r : store_delete(call->api->store, key, NULL, NULL, err);
            r = r == MUSTER_ENOENT ? 0 : r; /* went with its owner */
        }
        store_page_done(&page);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int check_namespace_deletion(struct api_call *call, struct muster_err *err)
{
    if (strcmp(call->route.resource->plural, "namespaces") != 0) {
        return 0;
    }
    if (strcmp(call->route.name, "default") == 0) {
        return muster_fail(err, MUSTER_EPERM, "this namespace may not be deleted");
    }
    return empty_namespace(call, err);
}

int verb_delete(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *object = NULL;
    struct store_delete_options options;
    struct store *store = call->api->store;
    int r = read_options(call, &options, err);
    if (r < 0 || (r = store_begin(store, err)) < 0) {
        return r;
    }
    if ((r = check_namespace_deletion(call, err)) == 0) {
        r = store_delete(store, call_key(call), &options, &object, err);
    }
    if ((r = finish(call, r, err)) < 0) {
        return r;
    }
    if (doc_at(object, "metadata.deletionTimestamp")) {
        return call_send_object(call, 200, object, err);
    }
    api_send_json(call->reply, 200, status_deleted(call->route.resource, object));
    return 0;
}

/* ---- delete a collection ---- */

static int delete_listed(struct api_call *call, const struct store_query *query,
                         const struct store_delete_options *options, struct store_page *page,
                         struct muster_err *err)
{
    int r = store_list(call->api->store, query, page, err);
    size_t i;
    json_t *item;
    json_array_foreach (page->items, i, item) {
        struct store_key key = {query->resource, doc_text(item, "metadata.namespace", ""),
                                doc_text(item, "metadata.name", "")};
        r = r < 0 ? r : store_delete(call->api->store, key, options, NULL, err);
        r = r == MUSTER_ENOENT ? 0 : r;
    }
    return r;
}

static int delete_and_send(struct api_call *call, const struct call_selectors *selectors,
                           const struct store_delete_options *options, struct muster_err *err)
{
    const struct resource *resource = call->route.resource;
    const struct store_query query = {.resource = resource->plural,
                                      .namespace = call->route.namespace,
                                      .labels = &selectors->labels,
                                      .fields = &selectors->fields};
    struct store_page page = {0};
    int r = store_begin(call->api->store, err);
    if (r < 0) {
        return r;
    }
    r = finish(call, delete_listed(call, &query, options, &page, err), err);
    if (r == 0) {
        struct build b = {0};
        char kind[64];
        (void)snprintf(kind, sizeof kind, "%sList", resource->kind);
        json_t *list = build_value(&b, json_object());
        build_text(&b, list, "kind", kind);
        build_text(&b, list, "apiVersion", resource_api_version(resource));
        build_object_at(&b, list, "metadata");
        build_set(&b, list, "items", json_incref(page.items));
        api_send_json(call->reply, 200, build_end(&b, list));
    }
    store_page_done(&page);
    return r;
}

int verb_delete_all(struct api_call *call, struct muster_err *err)
{
    struct call_selectors selectors = {0};
    struct store_delete_options options;
    if (!call->route.resource->namespaced || !*call->route.namespace) {
        return muster_fail(err, MUSTER_EMETHOD, "a collection is deleted one namespace at a time");
    }
    int r = read_options(call, &options, err);
    if (r == 0 && (r = call_selectors(call, &selectors, err)) == 0) {
        r = delete_and_send(call, &selectors, &options, err);
    }
    call_selectors_done(&selectors);
    return r;
}
