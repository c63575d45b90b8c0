/* See store_request.h. */
#include "daemon/store_request.h"

#include "api/patch/merge.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct store_key key_of(const struct cluster_request *q)
{
    return (struct store_key){q->resource->plural, q->namespace ? q->namespace : "",
                              q->name ? q->name : ""};
}

static int do_list(struct store *store, const struct cluster_request *q, json_t **ret,
                   struct muster_err *err)
{
    const struct store_query query = {.resource = q->resource->plural,
                                      .namespace =
                                          q->namespace && *q->namespace ? q->namespace : NULL};
    struct store_page page = {0};
    if (q->labels || q->fields || q->limit || q->next) {
        return muster_fail(err, MUSTER_EUNSUPPORTED, "the store lists whole collections only");
    }
    int r = store_list(store, &query, &page, err);
    if (r < 0) {
        return r;
    }
    json_t *version = json_sprintf("%" PRId64, page.version);
    *ret = json_pack("{s:{s:o}, s:O}", "metadata", "resourceVersion", version, "items", page.items);
    store_page_done(&page);
    return *ret ? 0 : err_no_memory(err);
}

static int do_replace(struct store *store, const struct cluster_request *q, json_t **ret,
                      struct muster_err *err)
{
    bool status = q->subresource && strcmp(q->subresource, "status") == 0;
    return store_update(store, q->resource->plural, q->body,
                        status ? STORE_STATUS_ONLY : STORE_BUT_STATUS, ret, err);
}

static int do_patch(struct store *store, const struct cluster_request *q, json_t **ret,
                    struct muster_err *err)
{
    muster_auto(doc) json_t *old = NULL;
    muster_auto(doc) json_t *merged = NULL;
    if (q->patch != CLUSTER_PATCH_MERGE) {
        return muster_fail(err, MUSTER_EUNSUPPORTED, "the store takes merge patches only");
    }
    int r = store_get(store, key_of(q), &old, err);
    r = r < 0 ? r : merge_patch(old, q->body, &merged, err);
    return r < 0 ? r
                 : store_update(store, q->resource->plural, merged,
                                q->subresource ? STORE_STATUS_ONLY : STORE_BUT_STATUS, ret, err);
}

static enum store_propagation propagation_of(const struct cluster_request *q)
{
    static const enum store_propagation all[] = {
        [CLUSTER_PROPAGATION_DEFAULT] = STORE_AS_FINALIZED,
        [CLUSTER_PROPAGATION_BACKGROUND] = STORE_BACKGROUND,
        [CLUSTER_PROPAGATION_FOREGROUND] = STORE_FOREGROUND,
        [CLUSTER_PROPAGATION_ORPHAN] = STORE_ORPHAN,
    };
    return all[q->propagation];
}

static int do_delete(struct store *store, const struct cluster_request *q, json_t **ret,
                     struct muster_err *err)
{
    const struct store_delete_options options = {
        .uid = q->uid,
        .version = q->version,
        .grace_s = q->grace_s < 0 ? STORE_GRACE_DEFAULT : q->grace_s,
        .propagation = propagation_of(q),
    };
    return store_delete(store, key_of(q), &options, ret, err);
}

int store_request_carry_out(struct store *store, const struct cluster_request *q, json_t **ret,
                            struct muster_err *err)
{
    switch (q->verb) {
    case CLUSTER_GET: return store_get(store, key_of(q), ret, err);
    case CLUSTER_LIST: return do_list(store, q, ret, err);
    case CLUSTER_CREATE: return store_create(store, q->resource->plural, q->body, ret, err);
    case CLUSTER_REPLACE: return do_replace(store, q, ret, err);
    case CLUSTER_PATCH: return do_patch(store, q, ret, err);
    case CLUSTER_DELETE: return do_delete(store, q, ret, err);
    }
    return muster_fail(err, MUSTER_EINTERNAL, "no such verb: %d", (int)q->verb);
}

const char *store_request_reason(int code)
{
    switch (code) {
    case MUSTER_ENOENT: return "NotFound";
    case MUSTER_EEXIST: return "AlreadyExists";
    case MUSTER_ECONFLICT: return "Conflict";
    case MUSTER_EGONE: return "Expired";
    default: return code < 0 ? "InternalError" : "";
    }
}
