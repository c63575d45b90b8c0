/* Answers requests of kubectl and client-go that are not about objects of the table: reviews (what
 * may I do, who am I), and which custom resources exist. A path that is not served is answered
 * with where to find the thing.
 *
 * Layer: services.
 */
#include "api/internal.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <stdio.h>
#include <string.h>

static bool is_method(const struct http_request *request, const char *method)
{
    return strcmp(request->method, method) == 0;
}

/* Returns what follows `prefix`, or NULL if the path does not begin with it. */
static const char *after(const char *path, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(path, prefix, length) == 0 ? path + length : NULL;
}

/* ---- reviews ---- */

/* Rules that allow everything: a client that was let in has the token, or is the user himself. */
static json_t *rules(void)
{
    return json_pack("{s:[{s:[s], s:[s], s:[s]}], s:[{s:[s], s:[s]}], s:b}", "resourceRules",
                     "verbs", "*", "apiGroups", "*", "resources", "*", "nonResourceRules", "verbs",
                     "*", "nonResourceURLs", "*", "incomplete", 0);
}

static json_t *allowed(void)
{
    return json_pack("{s:b, s:s}", "allowed", 1, "reason",
                     "whoever has this controller's token may do everything");
}

/* Returns the user, under the name that the kubeconfig has. */
static json_t *who(void)
{
    return json_pack("{s:{s:s, s:[s, s]}}", "userInfo", "username", "muster", "groups",
                     "system:masters", "system:authenticated");
}

#define VERSION_1(group) group, group "/v1"
#define EXTENSIONS "apiextensions.k8s.io"

const struct beside_kind beside_kinds[] = {
    {VERSION_1("authentication.k8s.io"),
     "selfsubjectreviews",
     "selfsubjectreview",
     "SelfSubjectReview",
     {"create"},
     {NULL},
     who},
    {VERSION_1("authorization.k8s.io"),
     "selfsubjectaccessreviews",
     "selfsubjectaccessreview",
     "SelfSubjectAccessReview",
     {"create"},
     {NULL},
     allowed},
    {VERSION_1("authorization.k8s.io"),
     "selfsubjectrulesreviews",
     "selfsubjectrulesreview",
     "SelfSubjectRulesReview",
     {"create"},
     {NULL},
     rules},
    {VERSION_1(EXTENSIONS),
     "customresourcedefinitions",
     "customresourcedefinition",
     "CustomResourceDefinition",
     {"get", "list"},
     {"crd", "crds"},
     NULL},
};

const size_t beside_kind_count = sizeof beside_kinds / sizeof beside_kinds[0];

static const struct beside_kind *find_review(const char *path)
{
    for (size_t i = 0; i < beside_kind_count; i++) {
        char own[128];
        (void)snprintf(own, sizeof own, "/apis/%s/%s", beside_kinds[i].api_version,
                       beside_kinds[i].plural);
        if (beside_kinds[i].review && strcmp(path, own) == 0) {
            return &beside_kinds[i];
        }
    }
    return NULL;
}

/* Go clients send the review in protobuf: the answer then does not repeat their question, and is
 * otherwise the same. */
static bool handle_review(const struct http_request *request, struct http_reply *reply)
{
    const struct beside_kind *kind = find_review(request->path);
    muster_auto(doc) json_t *body = NULL;
    if (!kind || !is_method(request, "POST")) {
        return false;
    }
    (void)doc_parse(request->body, request->body_bytes, &body, NULL);
    api_send_json(reply, 201,
                  json_pack("{s:s, s:s, s:{}, s:O*, s:o}", "kind", kind->kind, "apiVersion",
                            kind->api_version, "metadata", "spec", doc_at(body, "spec"), "status",
                            kind->review()));
    return true;
}

/* ---- custom resources ---- */

/* Returns the definition of jobs. It is part of this controller, has no real creation time, and
 * cannot be changed. */
static json_t *definition(const struct api *api)
{
    struct build b = {0};
    json_t *made = build_value(&b, api->hooks.definition());
    json_t *metadata = build_object_at(&b, made, "metadata");
    build_text(&b, metadata, "uid", doc_text(metadata, "name", ""));
    build_text(&b, metadata, "resourceVersion", "1");
    build_text(&b, metadata, "creationTimestamp", "1970-01-01T00:00:00Z");
    build_set(&b, made, "status",
              json_pack("{s:[{s:s, s:s, s:s}], s:O?, s:[s]}", "conditions", "type", "Established",
                        "status", "True", "reason", "InitialNamesAccepted", "acceptedNames",
                        doc_at(made, "spec.names"), "storedVersions", "v1"));
    return build_end(&b, made);
}

static const struct resource *custom(const char *name)
{
    for (size_t i = 0; i < resource_count; i++) {
        char own[128];
        if (resource_is_custom(&resources[i]) &&
            (!name || strcmp(name, resource_qualified(&resources[i], own, sizeof own)) == 0)) {
            return &resources[i];
        }
    }
    return NULL;
}

static bool handle_definitions(const struct api *api, const struct http_request *request,
                               struct http_reply *reply)
{
    const char *rest = after(request->path, "/apis/" EXTENSIONS "/v1/customresourcedefinitions");
    const struct resource *resource = rest && *rest == '/' ? custom(rest + 1) : custom(NULL);
    struct muster_err err = MUSTER_ERR_INIT;
    if (!rest || (*rest && *rest != '/') || !api->hooks.definition) {
        return false;
    }
    if (!is_method(request, "GET")) {
        (void)muster_fail(&err, MUSTER_EMETHOD,
                          "the custom resources of this controller are built in: they can be read "
                          "only");
        api_send_error(reply, &err);
    } else if (!resource) {
        (void)muster_fail(&err, MUSTER_ENOENT,
                          "customresourcedefinitions." EXTENSIONS " \"%.200s\" not found",
                          rest + 1);
        api_send_error(reply, &err);
    } else if (*rest) {
        api_send_json(reply, 200, definition(api));
    } else {
        api_send_json(reply, 200,
                      json_pack("{s:s, s:s, s:{s:s}, s:[o]}", "kind",
                                "CustomResourceDefinitionList", "apiVersion", EXTENSIONS "/v1",
                                "metadata", "resourceVersion", "1", "items", definition(api)));
    }
    return true;
}

/* ---- what is served elsewhere ---- */

static bool refuse_subresource(const struct http_request *request, struct http_reply *reply)
{
    static const struct {
        const char *end, *instead;
    } elsewhere[] = {
        {"/proxy", "a rank's ports are ports of this machine"},
        {"/ephemeralcontainers", "kubectl exec POD -- COMMAND runs a command in a rank"},
    };
    struct muster_err err = MUSTER_ERR_INIT;
    const char *pods = strstr(request->path, "/pods/");
    const char *end = pods ? strchr(pods + strlen("/pods/"), '/') : NULL;
    for (size_t i = 0; end && i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        if (strcmp(end, elsewhere[i].end) == 0) {
            (void)muster_fail(&err, MUSTER_EMETHOD,
                              "muster's controller has no %s of pods: %s (docs/api.md)", end + 1,
                              elsewhere[i].instead);
            api_send_error(reply, &err);
            return true;
        }
    }
    return false;
}

bool beside_handle(const struct api *api, const struct http_request *request,
                   struct http_reply *reply)
{
    return handle_review(request, reply) || handle_definitions(api, request, reply) ||
           refuse_subresource(request, reply);
}
