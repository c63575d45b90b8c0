/* Create and update. Every object that changes goes through the same steps: read, admit, store,
 * answer.
 *
 * Layer: services.
 */
#include "api/internal.h"
#include "api/options.h"
#include "api/protobuf/types.h"
#include "api/shape/shape.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "job/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAULT_BYTES_MAX = 1024 };

/* ---- the identity in the body ---- */

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
    r = r < 0 ? r
              : require_same("apiVersion", doc_text(object, "apiVersion", ""),
                             route->resource->api_version, err);
    r = r < 0 ? r
              : require_same("namespace", doc_text(object, "metadata.namespace", ""),
                             route->namespace, err);
    if (r == 0 && *route->name) {
        r = require_same("name", doc_text(object, "metadata.name", ""), route->name, err);
    }
    return r;
}

int call_check_types(const struct api_call *call, const json_t *object, struct muster_err *err)
{
    const struct resource *resource = call->route.resource;
    struct buf fault;
    buf_init(&fault, FAULT_BYTES_MAX);
    int r =
        types_fit(object, resource->api_version, resource->kind, &fault)
            ? 0
            : muster_fail(err, MUSTER_EINVAL, "%s in version \"v1\" cannot be handled as a %s: %s",
                          resource->kind, resource->kind, buf_str(&fault));
    buf_done(&fault);
    return r;
}

/* Fills in what the path says, and changes the object to its stored form. */
static int complete_identity(struct api_call *call, json_t *object, struct muster_err *err)
{
    const struct route *route = &call->route;
    bool failed =
        doc_set_text(object, "kind", route->resource->kind) < 0 ||
        doc_set_text(object, "apiVersion", route->resource->api_version) < 0 ||
        (*route->namespace && doc_set_text(object, "metadata.namespace", route->namespace) < 0) ||
        (*route->name && doc_set_text(object, "metadata.name", route->name) < 0) ||
        shape_take(route->resource->shape, object) < 0;
    return failed ? err_no_memory(err) : 0;
}

/* ---- create ---- */

json_t *namespace_make(const char *name)
{
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:s}}", "apiVersion", "v1", "kind", "Namespace",
                     "metadata", "name", name, "status", "phase", "Active");
}

/* A namespace is created with its first object: on a laptop there is no administrator to create
 * it. */
static int ensure_namespace(struct api_call *call, struct muster_err *err)
{
    if (!*call->route.namespace) {
        return 0;
    }
    muster_auto(doc) json_t *namespace = namespace_make(call->route.namespace);
    if (!namespace) {
        return err_no_memory(err);
    }
    int r = store_create(call->api->store, "namespaces", namespace, NULL, err);
    return r == MUSTER_EEXIST ? 0 : r;
}

/* For ?musterReplaceFinished=true: deletes a finished job of the same name, but not a live one. */
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
    r = r < 0 ? r : make_room(call, err);
    r = r < 0 ? r : store_create(store, call->route.resource->plural, call->body, ret, err);
    return call_finish(call, r, err);
}

/* Asks the controller about what it must have for the object (GPUs, volumes, a held lease). */
static int ask_machine(struct api_call *call, struct muster_err *err)
{
    const struct api_hooks *hooks = &call->api->hooks;
    int r = hooks->admit ? hooks->admit(hooks->arg, call->route.resource->plural, call->body,
                                        &call->problems, err)
                         : 0;
    return r < 0 || call->problems.errors == 0
               ? r
               : muster_fail(err, MUSTER_EDATA, "the object is invalid");
}

/* An API server answers 500, but not to a dry run, and treats text that is not a number of 64 bits
 * like no version. */
static int check_unversioned(const json_t *object, struct muster_err *err)
{
    const char *version = doc_text(object, "metadata.resourceVersion", "");
    bool digits = *version && version[strspn(version, "0123456789")] == '\0';
    errno = 0;
    return digits && strtoull(version, NULL, 10) > 0 && errno == 0
               ? muster_fail(err, MUSTER_EINTERNAL,
                             "resourceVersion should not be set on objects to be created")
               : 0;
}

int verb_create(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *object = NULL;
    bool applies = request_is_type(call->request, APPLY_TYPE);
    if (call->route.resource->namespaced && !*call->route.namespace) {
        return muster_fail(err, MUSTER_EINVAL, "an empty namespace may not be set during creation");
    }
    int r = check_identity(call, call->body, err);
    r = r < 0 ? r : call_check_types(call, call->body, err);
    r = r < 0 || applies || call->dry_run ? r : check_unversioned(call->body, err);
    if (r < 0) {
        return r;
    }
    r = complete_identity(call, call->body, err);
    r = r < 0 ? r : call_own_new(call, applies, err);
    /* The name is used in messages and in the store. A name that is too long for this is not a
     * valid name, which admit reports. */
    (void)snprintf(call->route.name, sizeof call->route.name, "%s",
                   doc_text(call->body, "metadata.name", ""));
    r = r < 0 ? r : admit(call, NULL, call->body, err);
    r = r < 0 ? r : ask_machine(call, err);
    if (r < 0) {
        return r;
    }
    /* Where status is a subresource, a status that a client sends at creation is dropped; admit
     * gave pods and claims their phase. */
    if (call->route.resource->subresources & RESOURCE_SCALE) {
        json_object_del(call->body, "status");
    }
    r = create_in_store(call, &object, err);
    return r < 0 ? r : call_send_written(call, 201, object, err);
}

/* ---- update ---- */

static enum store_part part_of(const struct api_call *call)
{
    if (strcmp(call->route.subresource, "status") == 0) {
        return STORE_STATUS_ONLY;
    }
    return call->route.resource->subresources & RESOURCE_STATUS ? STORE_BUT_STATUS : STORE_ALL;
}

/* The store refuses an old version, and reports this before anything else that is wrong, as an API
 * server does. */
static bool is_of_old_version(const json_t *before, const json_t *object)
{
    const char *version = doc_text(object, "metadata.resourceVersion", "");
    return *version && strcmp(version, doc_text(before, "metadata.resourceVersion", "")) != 0;
}

int call_store_update(struct api_call *call, const json_t *before, json_t *object,
                      struct muster_err *err)
{
    muster_auto(doc) json_t *stored = NULL;
    struct store *store = call->api->store;
    enum store_part part = part_of(call);
    bool checked = part != STORE_STATUS_ONLY && !is_of_old_version(before, object);
    int r = check_identity(call, object, err);
    r = r < 0 ? r : complete_identity(call, object, err);
    r = r < 0 || part == STORE_STATUS_ONLY ? r : call_own_changes(call, before, object, err);
    r = r < 0 || !checked ? r : admit(call, before, object, err);
    r = r < 0 ? r : store_begin(store, err);
    if (r < 0) {
        return r;
    }
    r = store_update(store, call->route.resource->plural, object, part, &stored, err);
    r = call_finish(call, r, err);
    return r < 0 ? r : call_send_written(call, 200, stored, err);
}

/* An update of a custom resource must name the version that it is based on; updates of other kinds
 * may overwrite any version. */
static int check_version(struct api_call *call, struct muster_err *err)
{
    if (!resource_is_custom(call->route.resource) ||
        *doc_text(call->body, "metadata.resourceVersion", "")) {
        return 0;
    }
    job_problem_add(&call->problems, JOB_ERROR, "metadata.resourceVersion", NULL,
                    "Invalid value: 0: must be specified for an update");
    return muster_fail(err, MUSTER_EDATA, "the object is invalid");
}

int verb_update(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *before = NULL;
    int r = check_identity(call, call->body, err);
    r = r < 0 ? r : call_check_types(call, call->body, err);
    r = r < 0 ? r : check_version(call, err);
    r = r < 0 ? r : store_get(call->api->store, call_key(call), &before, err);
    if (r < 0) {
        return r;
    }
    return call_store_update(call, before, call->body, err);
}
