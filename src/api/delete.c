/* Delete: one object, a collection, a namespace and everything in it.
 *
 * Layer: services.
 */
#include "api/internal.h"

#include "base/cleanup.h"
#include "base/doc.h"

#include <stdlib.h>
#include <string.h>

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

/* Deletes what the query finds; the page holds it, also after a failure. */
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
        r = r == MUSTER_ENOENT ? 0 : r; /* went with its owner */
    }
    return r;
}

/* Everything in it goes with a namespace. */
static int empty_namespace(struct api_call *call, struct muster_err *err)
{
    int r = 0;
    for (size_t i = 0; i < resource_count && r == 0; i++) {
        const struct store_query query = {.resource = resources[i].plural,
                                          .namespace = call->route.name};
        struct store_page page = {0};
        if (resources[i].namespaced) {
            r = delete_listed(call, &query, NULL, &page, err);
        }
        store_page_done(&page);
    }
    return r;
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
    r = r < 0 ? r : store_begin(store, err);
    if (r < 0) {
        return r;
    }
    r = check_namespace_deletion(call, err);
    r = r < 0 ? r : store_delete(store, call_key(call), &options, &object, err);
    r = call_finish(call, r, err);
    if (r < 0) {
        return r;
    }
    if (doc_at(object, "metadata.deletionTimestamp")) {
        return call_send_object(call, 200, object, err);
    }
    api_send_json(call->reply, 200, status_deleted(call->route.resource, object));
    return 0;
}

/* policy/v1: there are no budgets here that could refuse it. */
int verb_evict(struct api_call *call, struct muster_err *err)
{
    json_t *options = json_incref(doc_at(call->body, "deleteOptions"));
    json_decref(call->body);
    call->body = options;
    call->dry_run = call->dry_run || *doc_text(options, "dryRun.0", "");
    return verb_delete(call, err);
}

/* ---- a collection ---- */

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
    r = call_finish(call, delete_listed(call, &query, options, &page, err), err);
    if (r == 0) {
        api_send_json(call->reply, 200, list_make(resource, page.items, NULL));
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
    r = r < 0 ? r : call_selectors(call, &selectors, err);
    r = r < 0 ? r : delete_and_send(call, &selectors, &options, err);
    call_selectors_done(&selectors);
    return r;
}
