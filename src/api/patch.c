/* The patch verb: finds which kind of patch the body is, and applies it to the stored object.
 *
 * Layer: services.
 */
#include "api/internal.h"
#include "api/options.h"
#include "api/patch/merge.h"
#include "api/shape/shape.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <string.h>
#include <strings.h>

typedef int (*patch_function)(const json_t *doc, const json_t *patch, json_t **ret,
                              struct muster_err *err);

static const struct patch_kind {
    const char *type;
    patch_function apply; /* NULL: server-side apply */
    bool creates;         /* server-side apply: an object that does not exist is created */
} patch_kinds[] = {
    {"application/merge-patch+json", merge_patch, false},
    {"application/json-patch+json", json_patch, false},
    {"application/strategic-merge-patch+json", strategic_patch, false},
    {APPLY_TYPE, NULL, true},
};

static const struct patch_kind *find_kind(const struct api_call *call, struct muster_err *err)
{
    const char *type = http_header(call->request, "Content-Type");
    size_t length = type ? strcspn(type, "; ") : 0;
    for (size_t i = 0; i < sizeof patch_kinds / sizeof patch_kinds[0]; i++) {
        const struct patch_kind *kind = &patch_kinds[i];
        if (strlen(kind->type) == length && strncasecmp(kind->type, type, length) == 0) {
            bool custom = resource_is_custom(call->route.resource);
            if (kind->apply == strategic_patch && custom) {
                break; /* as on a cluster: clients then fall back to a merge patch */
            }
            return kind;
        }
    }
    muster_fail(err, MUSTER_EUNSUPPORTED,
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, "
                "application/apply-patch+yaml");
    return NULL;
}

static int apply_as_owner(struct api_call *call, const json_t *shown, json_t **ret,
                          struct muster_err *err)
{
    struct caller caller;
    struct owner owner = caller_read(call, "Apply", &caller);
    bool force = http_query_bool(call->request, "force");
    if (json_array_size(doc_at(call->body, "metadata.managedFields")) > 0) {
        return muster_fail(err, MUSTER_EINVAL, "metadata.managedFields must be nil");
    }
    int r = owners_apply(shown, call->body, &owner, force, &call->problems, ret, err);
    call->applied = true;
    call->refusal = r == MUSTER_ECONFLICT ? REFUSED_APPLY : call->refusal;
    return r;
}

/* If a patch makes a wrong value, an API server names the field `patch`; for an applied object it
 * names no field. */
static int check_result(struct api_call *call, const struct patch_kind *kind, const json_t *after,
                        struct muster_err *err)
{
    struct muster_err why = MUSTER_ERR_INIT;
    int r = call_check_types(call, after, kind->creates ? err : &why);
    if (r < 0 && !kind->creates) {
        job_problem_add(&call->problems, JOB_ERROR, "patch", NULL, "Invalid value: %s", why.text);
        return muster_fail(err, MUSTER_EDATA, "the object is invalid");
    }
    return r;
}

/* A patch may name the resourceVersion that it applies to; the default is the version just read. */
static int apply(struct api_call *call, const struct patch_kind *kind, struct muster_err *err)
{
    muster_auto(doc) json_t *before = NULL;
    muster_auto(doc) json_t *shown = NULL;
    muster_auto(doc) json_t *after = NULL;
    int r = store_get(call->api->store, call_key(call), &before, err);
    shown = r < 0 ? NULL : shape_show(call->route.resource->shape, before);
    r = r < 0 || shown ? r : err_no_memory(err);
    if (r == 0) {
        /* A status has no owners here. */
        patch_function lay = kind->apply || !*call->route.subresource ? kind->apply : merge_patch;
        r = lay ? lay(shown, call->body, &after, err) : apply_as_owner(call, shown, &after, err);
    }
    r = r < 0 ? r : check_result(call, kind, after, err);
    if (r < 0) {
        return r;
    }
    return call_store_update(call, before, after, err);
}

int verb_patch(struct api_call *call, struct muster_err *err)
{
    const struct patch_kind *kind = find_kind(call, err);
    if (!kind) {
        return MUSTER_EUNSUPPORTED;
    }
    int r = apply(call, kind, err);
    if (r == MUSTER_ENOENT && kind->creates && !*call->route.subresource) {
        call->route.name[0] = '\0';
        return verb_create(call, err);
    }
    return r;
}
