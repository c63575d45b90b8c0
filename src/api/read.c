/* Get and list. Layer: services. */
#include "api/internal.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_MAX = 100000 };

struct store_key call_key(const struct api_call *call)
{
    return (struct store_key){call->route.resource->plural, call->route.namespace,
                              call->route.name};
}

int call_send_object(struct api_call *call, int status, json_t *object, struct muster_err *err)
{
    if (!table_wanted(call->request)) {
        api_send_json(call->reply, status, json_incref(object));
        return 0;
    }
    muster_auto(doc) json_t *items = json_pack("[O]", object);
    muster_auto(doc) json_t *meta =
        json_pack("{s:s}", "resourceVersion", doc_text(object, "metadata.resourceVersion", ""));
    json_t *table =
        items && meta ? table_make(call->route.resource, items, meta, call->request) : NULL;
    if (!table) {
        return muster_fail(err, MUSTER_ENOMEM, "out of memory");
    }
    api_send_json(call->reply, status, table);
    return 0;
}

int verb_get(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *object = NULL;
    int r = store_get(call->api->store, call_key(call), &object, err);
    return r < 0 ? r : call_send_object(call, 200, object, err);
}

/* ---- selectors ---- */

/* Is `key` among the words of `fields`? */
static bool has_word(const char *fields, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = fields; (at = strstr(at, key)); at += length) {
        bool starts = at == fields || at[-1] == ' ';
        if (starts && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static int check_fields(const struct resource *resource, const struct selector *fields,
                        struct muster_err *err)
{
    for (size_t i = 0; i < fields->count; i++) {
        const char *key = fields->requirements[i].key;
        if (!has_word("metadata.name metadata.namespace", key) &&
            !has_word(resource->fields, key)) {
            return muster_fail(err, MUSTER_EINVAL, "field label not supported: %s", key);
        }
    }
    return 0;
}

int call_selectors(const struct api_call *call, struct call_selectors *ret, struct muster_err *err)
{
    *ret = (struct call_selectors){0};
    int r = selector_parse_labels(http_query(call->request, "labelSelector"), &ret->labels, err);
    if (r == 0) {
        r = selector_parse_fields(http_query(call->request, "fieldSelector"), &ret->fields, err);
    }
    return r < 0 ? r : check_fields(call->route.resource, &ret->fields, err);
}

void call_selectors_done(struct call_selectors *selectors)
{
    selector_done(&selectors->labels);
    selector_done(&selectors->fields);
}

int query_number(const struct http_request *request, const char *name, int64_t *ret,
                 struct muster_err *err)
{
    const char *text = http_query(request, name);
    char *end;
    if (!text || !*text) {
        return 0;
    }
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    if (errno || *end || value < 0) {
        return muster_fail(err, MUSTER_EINVAL, "%s must be a number from 0: %.40s", name, text);
    }
    *ret = value;
    return 0;
}

/* ---- list ---- */

static int read_limit(const struct api_call *call, int64_t *ret, struct muster_err *err)
{
    const char *text = http_query(call->request, "limit");
    char *end = NULL;
    errno = 0;
    int64_t limit = text && *text ? strtoll(text, &end, 10) : 0;
    if (errno || (end && *end) || limit < 0) {
        return muster_fail(err, MUSTER_EINVAL, "limit must be a number from 0: %.40s", text);
    }
    *ret = limit > LIMIT_MAX ? LIMIT_MAX : limit;
    return 0;
}

static json_t *list_meta(const struct store_page *page)
{
    struct build b = {0};
    char version[24];
    (void)snprintf(version, sizeof version, "%" PRId64, page->version);
    json_t *meta = build_value(&b, json_object());
    build_text(&b, meta, "resourceVersion", version);
    build_text(&b, meta, "continue", page->next);
    return build_end(&b, meta);
}

static json_t *make_list(const struct resource *resource, json_t *items, json_t *meta)
{
    struct build b = {0};
    char kind[64];
    (void)snprintf(kind, sizeof kind, "%sList", resource->kind);
    json_t *list = build_value(&b, json_object());
    build_text(&b, list, "kind", kind);
    build_text(&b, list, "apiVersion", resource_api_version(resource));
    build_set(&b, list, "metadata", json_incref(meta));
    build_set(&b, list, "items", json_incref(items));
    return build_end(&b, list);
}

static int send_page(struct api_call *call, const struct store_page *page, struct muster_err *err)
{
    const struct resource *resource = call->route.resource;
    muster_auto(doc) json_t *meta = list_meta(page);
    json_t *answer = NULL;
    if (meta) {
        answer = table_wanted(call->request)
                     ? table_make(resource, page->items, meta, call->request)
                     : make_list(resource, page->items, meta);
    }
    if (!answer) {
        return muster_fail(err, MUSTER_ENOMEM, "out of memory");
    }
    api_send_json(call->reply, 200, answer);
    return 0;
}

static int list_and_send(struct api_call *call, const struct call_selectors *selectors,
                         struct muster_err *err)
{
    const char *next = http_query(call->request, "continue");
    struct store_query query = {
        .resource = call->route.resource->plural,
        .namespace = *call->route.namespace ? call->route.namespace : NULL,
        .labels = &selectors->labels,
        .fields = &selectors->fields,
        .next = next && *next ? next : NULL,
    };
    struct store_page page = {0};
    int r = read_limit(call, &query.limit, err);
    if (r == 0 && (r = store_list(call->api->store, &query, &page, err)) == 0) {
        r = send_page(call, &page, err);
    }
    store_page_done(&page);
    return r;
}

int verb_list(struct api_call *call, struct muster_err *err)
{
    if (http_query_bool(call->request, "watch")) {
        return verb_watch(call, err);
    }
    struct call_selectors selectors;
    int r = call_selectors(call, &selectors, err);
    if (r == 0) {
        r = list_and_send(call, &selectors, err);
    }
    call_selectors_done(&selectors);
    return r;
}
