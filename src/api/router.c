/* The router: finds the verb for a path and a method. All that a call needs is made and freed
 * here.
 *
 * Layer: services. Thread: the loop's.
 */
#include "api/fields.h"
#include "api/options.h"
#include "api/protobuf/protobuf.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/memory_text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PROBLEMS_MAX = 100, GRACE_DEFAULT_S = 30 };

static const char muster_prefix[] = "/muster/v1/";
static const char lease_prefix[] = "leases/";

/* The table of routes: what a method does at a path. The first row that fits is taken. */
static const struct rule {
    const char *method;
    const char *subresource; /* "" is the object or its collection */
    bool on_collection;
    api_verb options; /* checks the options; NULL: there are none */
    api_verb verb;
} rules[] = {
    {"GET", "", true, options_list, verb_list},
    {"POST", "", true, options_create, verb_create},
    {"DELETE", "", true, options_delete_all, verb_delete_all},
    {"GET", "", false, NULL, verb_get},
    {"PUT", "", false, options_update, verb_update},
    {"PATCH", "", false, options_patch, verb_patch},
    {"DELETE", "", false, options_delete, verb_delete},
    {"GET", "status", false, NULL, verb_get},
    {"PUT", "status", false, options_update, verb_update},
    {"PATCH", "status", false, options_patch, verb_patch},
    {"GET", "scale", false, NULL, verb_get_scale},
    {"PUT", "scale", false, options_update, verb_set_scale},
    {"PATCH", "scale", false, options_patch, verb_set_scale},
    {"GET", "log", false, NULL, verb_log},
    {"POST", "eviction", false, options_create, verb_evict},
    {"GET", "exec", false, NULL, verb_stream},
    {"POST", "exec", false, NULL, verb_stream},
    {"GET", "attach", false, NULL, verb_stream},
    {"POST", "attach", false, NULL, verb_stream},
    {"GET", "portforward", false, NULL, verb_stream},
    {"POST", "portforward", false, NULL, verb_stream},
};

/* ---- life ---- */

static int ensure_default_namespace(struct store *store, struct muster_err *err)
{
    muster_auto(doc) json_t *namespace = namespace_make("default");
    if (!namespace) {
        return err_no_memory(err);
    }
    int r = store_create(store, "namespaces", namespace, NULL, err);
    return r == MUSTER_EEXIST ? 0 : r;
}

int api_new(uv_loop_t *loop, struct store *store, const struct api_hooks *hooks, struct api **ret,
            struct muster_err *err)
{
    int r = ensure_default_namespace(store, err);
    if (r < 0) {
        return r;
    }
    struct api *api = calloc(1, sizeof *api);
    if (!api) {
        return err_no_memory(err);
    }
    api->loop = loop;
    api->store = store;
    api->hooks = hooks ? *hooks : (struct api_hooks){0};
    *ret = api;
    return 0;
}

struct api *api_free(struct api *api)
{
    if (api) {
        api->closing = true;
        while (api->lives) {
            live_end(api->lives);
        }
        free(api);
    }
    return NULL;
}

size_t api_watch_count(const struct api *api)
{
    return api->watch_count;
}

size_t api_lease_count(const struct api *api)
{
    return api->lease_count;
}

int64_t api_grace_s(const char *resource, const json_t *object)
{
    const char *phase = doc_text(object, "status.phase", "");
    if (strcmp(resource, "pods") != 0 || strcmp(phase, "Succeeded") == 0 ||
        strcmp(phase, "Failed") == 0 || !*doc_text(object, "spec.nodeName", "")) {
        return 0;
    }
    int64_t grace_s = doc_int(object, "spec.terminationGracePeriodSeconds", GRACE_DEFAULT_S);
    return grace_s > 0 ? grace_s : 1; /* the agent still has processes to end */
}

/* ---- calls ---- */

static const struct rule *find_rule(const struct http_request *request, const struct route *route)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct rule *r = &rules[i];
        if (strcmp(r->method, request->method) == 0 && r->on_collection == !*route->name &&
            strcmp(r->subresource, route->subresource) == 0) {
            return r;
        }
    }
    return NULL;
}

bool request_is_type(const struct http_request *request, const char *type)
{
    const char *given = http_header(request, "Content-Type");
    return given && strncasecmp(given, type, strlen(type)) == 0; /* RFC 9110, 8.3.1 */
}

/* The patch verb checks the type of a patch. A body without a type is JSON, as for the API
 * server. */
static int check_type(const struct http_request *request, struct muster_err *err)
{
    static const char *const known[] = {"application/json", "*/*", PROTOBUF_TYPE};
    const char *type = http_header(request, "Content-Type");
    if (strcmp(request->method, "PATCH") == 0 || !type) {
        return 0;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (request_is_type(request, known[i])) {
            return 0;
        }
    }
    return muster_fail(
        err, MUSTER_EUNSUPPORTED,
        "the body must be application/json, not %.100s: kubectl and muster turn YAML "
        "into JSON themselves",
        type);
}

static int read_body(struct api_call *call, const struct rule *rule, struct muster_err *err)
{
    const struct http_request *request = call->request;
    bool optional = strcmp(request->method, "DELETE") == 0 || strcmp(request->method, "GET") == 0 ||
                    rule->verb == verb_stream;
    if (request->body_bytes == 0) {
        return optional ? 0 : muster_fail(err, MUSTER_EINVAL, "the request has no body");
    }
    int r = check_type(request, err);
    if (r < 0) {
        return r;
    }
    if (request_is_type(request, PROTOBUF_TYPE)) {
        return protobuf_read(request->body, request->body_bytes, &call->body, err);
    }
    return fields_parse(call, err);
}

/* Logs, streams and scales have other forms. */
static int read_form(struct api_call *call, const struct rule *rule, struct muster_err *err)
{
    if (rule->verb == verb_log || rule->verb == verb_stream || rule->verb == verb_get_scale ||
        rule->verb == verb_set_scale) {
        return 0;
    }
    bool is_list = rule->verb == verb_delete_all ||
                   (rule->verb == verb_list && !http_query_bool(call->request, "watch"));
    int r = form_read(call->request, is_list, &call->form, err);
    call->refusal = r == MUSTER_EUNSUPPORTED ? REFUSED_FORM : call->refusal;
    return r;
}

static int check_method(const struct api_call *call, const struct rule *rule,
                        struct muster_err *err)
{
    const struct resource *resource = call->route.resource;
    bool reads = rule && (rule->verb == verb_list || rule->verb == verb_get ||
                          rule->verb == verb_delete || rule->verb == verb_delete_all);
    if (rule && resource->instead && !reads) {
        return muster_fail(err, MUSTER_EMETHOD, "there are no %s here: %s (docs/api.md)",
                           resource->plural, resource->instead);
    }
    return rule ? 0
                : muster_fail(err, MUSTER_EMETHOD,
                              "the server does not allow this method on the requested resource");
}

static void handle_resource(struct api *api, const struct http_request *request,
                            const struct route *route, struct http_reply *reply)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct api_call call = {.api = api, .request = request, .reply = reply, .route = *route};
    job_problems_init(&call.problems, PROBLEMS_MAX);
    const struct rule *rule = find_rule(request, route);
    int r = check_method(&call, rule, &err);
    r = r < 0 ? r : read_body(&call, rule, &err);
    r = r < 0 || !rule->options ? r : rule->options(&call, &err);
    r = r < 0 ? r : read_form(&call, rule, &err);
    r = r < 0 ? r : rule->verb(&call, &err);
    if (r < 0) {
        status_send(&call, &err);
    }
    json_decref(call.body);
    job_problems_done(&call.problems);
}

/* ---- paths that Kubernetes does not have ---- */

static void handle_muster(struct api *api, const char *rest, const struct http_request *request,
                          struct http_reply *reply)
{
    size_t prefix = strlen(lease_prefix);
    if (strncmp(rest, lease_prefix, prefix) == 0 && strcmp(request->method, "GET") == 0 &&
        rest[prefix] && strlen(rest) - prefix < ROUTE_NAME_BYTES && !strchr(rest + prefix, '/')) {
        lease_open(api, rest + prefix, reply);
    } else if (api->hooks.muster) {
        api->hooks.muster(api->hooks.arg, rest, request, reply);
    } else {
        struct muster_err err = MUSTER_ERR_INIT;
        muster_fail(&err, MUSTER_ENOENT, "the server could not find the requested resource");
        api_send_error(reply, &err);
    }
}

static void refuse_size(const struct http_request *request, struct http_reply *reply)
{
    char most[MEMORY_TEXT_BYTES];
    struct muster_err err = MUSTER_ERR_INIT;
    muster_fail(&err, MUSTER_ETOOBIG, "the request body is too large: %s at most",
                memory_text((int64_t)request->body_bytes_max, most));
    api_send_error(reply, &err);
}

void api_handle(void *arg, const struct http_request *request, struct http_reply *reply)
{
    struct api *api = arg;
    struct route route;
    struct muster_err err = MUSTER_ERR_INIT;
    if (request->too_large) {
        refuse_size(request, reply);
    } else if (request->head_fault) {
        muster_fail(&err, MUSTER_EINVAL, "%s", request->head_fault);
        api_send_error(reply, &err);
    } else if (strncmp(request->path, muster_prefix, strlen(muster_prefix)) == 0) {
        handle_muster(api, request->path + strlen(muster_prefix), request, reply);
    } else if (route_parse(request->path, &route)) {
        handle_resource(api, request, &route, reply);
    } else if (!beside_handle(api, request, reply) && !discovery_handle(api, request, reply) &&
               !openapi_handle(api, request, reply)) {
        muster_fail(&err, MUSTER_ENOENT, "the server could not find the requested resource");
        api_send_error(reply, &err);
    }
}
