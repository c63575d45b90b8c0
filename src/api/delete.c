/* Deletes one object, a collection, or a namespace with all that is in it.
 *
 * Layer: services.
 */
#include "api/options.h"

#include "base/cleanup.h"
#include "base/doc.h"

#include <string.h>

/* orphanDependents is the older way to say Orphan. */
static enum store_propagation propagation_of(const json_t *options)
{
    static const char *const policies[] = {[STORE_AS_FINALIZED] = "",
                                           [STORE_BACKGROUND] = "Background",
                                           [STORE_FOREGROUND] = "Foreground",
                                           [STORE_ORPHAN] = "Orphan"};
    const char *policy = doc_bool(options, "orphanDependents", false)
                             ? "Orphan"
                             : doc_text(options, "propagationPolicy", "");
    enum store_propagation how = STORE_AS_FINALIZED;
    while (strcmp(policies[how], policy) != 0) {
        how++; /* options_delete has checked that it is one of them */
    }
    return how;
}

static struct store_delete_options options_of(const json_t *options)
{
    int64_t grace_s = doc_int(options, "gracePeriodSeconds", STORE_GRACE_DEFAULT);
    return (struct store_delete_options){
        .uid = doc_text(options, "preconditions.uid", NULL),
        .version = doc_text(options, "preconditions.resourceVersion", NULL),
        .grace_s = grace_s < 0 ? STORE_GRACE_DEFAULT : grace_s,
        .propagation = propagation_of(options),
    };
}

/* Deletes what the query finds. The page holds the objects, also after a failure. */
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
        r = r == MUSTER_ENOENT ? 0 : r; /* it was deleted with its owner */
    }
    return r;
}

/* Deletes everything in a namespace that is deleted. */
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
    const struct store_delete_options options = options_of(call->body);
    struct store *store = call->api->store;
    int r = store_begin(store, err);
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

/* Evicts a pod, policy/v1: there are no disruption budgets here that could refuse it. */
int verb_evict(struct api_call *call, struct muster_err *err)
{
    json_t *options = json_incref(doc_at(call->body, "deleteOptions"));
    json_decref(call->body);
    call->body = options;
    int r = options_delete(call, err);
    return r < 0 ? r : verb_delete(call, err);
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
        r = call_send_page(call, &page, err);
    }
    store_page_done(&page);
    return r;
}

int verb_delete_all(struct api_call *call, struct muster_err *err)
{
    struct call_selectors selectors = {0};
    const struct store_delete_options options = options_of(call->body);
    if (!call->route.resource->namespaced || !*call->route.namespace) {
        return muster_fail(err, MUSTER_EMETHOD, "a collection is deleted one namespace at a time");
    }
    int r = call_selectors(call, &selectors, err);
    r = r < 0 ? r : delete_and_send(call, &selectors, &options, err);
    call_selectors_done(&selectors);
    return r;
}
