/* What clients ask before they ask for objects: groups, resources, version, OpenAPI, health.
 *
 * The OpenAPI documents say one thing: that every patch takes fieldValidation. kubectl create and
 * apply look for that; the schema itself they do not need.
 *
 * Layer: services.
 */
#include "api/internal.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define OPENAPI_V2_TYPE "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

static const char custom_group[] = "kubeflow.org";

/* ---- resources of a group ---- */

static json_t *words(struct build *b, const char *const *list)
{
    json_t *array = build_value(b, json_array());
    for (; *list; list++) {
        build_add(b, array, json_string(*list));
    }
    return array;
}

static json_t *entry(struct build *b, const struct resource *resource)
{
    static const char *const all[] = {
        "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch", NULL};
    json_t *entry = build_value(b, json_object());
    build_text(b, entry, "name", resource->plural);
    build_text(b, entry, "singularName", resource->singular);
    build_set(b, entry, "namespaced", json_boolean(resource->namespaced));
    build_text(b, entry, "kind", resource->kind);
    build_set(b, entry, "verbs", words(b, all));
    if (*resource->short_name) {
        build_add(b, build_array_at(b, entry, "shortNames"), json_string(resource->short_name));
    }
    if (*resource->group || strcmp(resource->plural, "pods") == 0) {
        build_add(b, build_array_at(b, entry, "categories"), json_string("all"));
    }
    return entry;
}

static json_t *entry_below(struct build *b, const struct resource *resource,
                           const struct subresource *sub)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s/%s", resource->plural, sub->name);
    json_t *entry = build_value(b, json_object());
    build_text(b, entry, "name", name);
    build_text(b, entry, "singularName", "");
    build_set(b, entry, "namespaced", json_boolean(resource->namespaced));
    build_text(b, entry, "kind", sub->kind ? sub->kind : resource->kind);
    build_text(b, entry, "group", sub->group);
    build_text(b, entry, "version", sub->group ? "v1" : NULL);
    build_set(b, entry, "verbs", words(b, sub->verbs));
    return entry;
}

static json_t *resource_list(const char *group, const char *group_version)
{
    struct build b = {0};
    json_t *list = build_value(&b, json_object());
    build_text(&b, list, "kind", "APIResourceList");
    build_text(&b, list, "apiVersion", "v1");
    build_text(&b, list, "groupVersion", group_version);
    json_t *entries = build_array_at(&b, list, "resources");
    for (size_t i = 0; i < resource_count; i++) {
        if (strcmp(resources[i].group, group) != 0) {
            continue;
        }
        build_add(&b, entries, entry(&b, &resources[i]));
        for (size_t s = 0; s < subresource_count; s++) {
            if (resources[i].subresources & subresources[s].bit) {
                build_add(&b, entries, entry_below(&b, &resources[i], &subresources[s]));
            }
        }
    }
    return build_end(&b, list);
}

static json_t *core_resources(const struct api *api)
{
    (void)api;
    return resource_list("", "v1");
}

static json_t *custom_resources(const struct api *api)
{
    (void)api;
    return resource_list(custom_group, "kubeflow.org/v1");
}

/* ---- groups ---- */

static json_t *core_versions(const struct api *api)
{
    (void)api;
    return json_pack("{s:s, s:[s], s:[]}", "kind", "APIVersions", "versions", "v1",
                     "serverAddressByClientCIDRs");
}

/* What beside.c answers. */
static json_t *review_resources(const struct api *api)
{
    (void)api;
    return json_pack(
        "{s:s, s:s, s:s, s:[{s:s, s:s, s:b, s:s, s:[s]}, {s:s, s:s, s:b, s:s, s:[s]}]}", "kind",
        "APIResourceList", "apiVersion", "v1", "groupVersion", "authorization.k8s.io/v1",
        "resources", "name", "selfsubjectaccessreviews", "singularName", "selfsubjectaccessreview",
        "namespaced", 0, "kind", "SelfSubjectAccessReview", "verbs", "create", "name",
        "selfsubjectrulesreviews", "singularName", "selfsubjectrulesreview", "namespaced", 0,
        "kind", "SelfSubjectRulesReview", "verbs", "create");
}

static json_t *definition_resources(const struct api *api)
{
    (void)api;
    return json_pack(
        "{s:s, s:s, s:s, s:[{s:s, s:s, s:b, s:s, s:[s, s], s:[s, s]}]}", "kind", "APIResourceList",
        "apiVersion", "v1", "groupVersion", "apiextensions.k8s.io/v1", "resources", "name",
        "customresourcedefinitions", "singularName", "customresourcedefinition", "namespaced", 0,
        "kind", "CustomResourceDefinition", "verbs", "get", "list", "shortNames", "crd", "crds");
}

static json_t *entry_of_group(const char *name, const char *version)
{
    return json_pack("{s:s, s:[{s:s, s:s}], s:{s:s, s:s}}", "name", name, "versions",
                     "groupVersion", version, "version", "v1", "preferredVersion", "groupVersion",
                     version, "version", "v1");
}

static json_t *group_entry(void)
{
    return entry_of_group(custom_group, "kubeflow.org/v1");
}

static json_t *group(const struct api *api)
{
    (void)api;
    json_t *group = group_entry();
    if (group && (json_object_set_new(group, "kind", json_string("APIGroup")) != 0 ||
                  json_object_set_new(group, "apiVersion", json_string("v1")) != 0)) {
        json_decref(group);
        return NULL;
    }
    return group;
}

static json_t *groups(const struct api *api)
{
    (void)api;
    return json_pack("{s:s, s:s, s:[o, o, o]}", "kind", "APIGroupList", "apiVersion", "v1",
                     "groups", group_entry(),
                     entry_of_group("authorization.k8s.io", "authorization.k8s.io/v1"),
                     entry_of_group("apiextensions.k8s.io", "apiextensions.k8s.io/v1"));
}

/* ---- version ---- */

static json_t *version(const struct api *api)
{
    (void)api;
    struct utsname machine;
    char platform[128];
    uname(&machine);
    (void)snprintf(platform, sizeof platform, "linux/%s", machine.machine);
    /* major and minor are the Kubernetes API's, for clients that compare them. */
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "major", "1", "minor", "32", "gitVersion",
                     "v1.32.0+muster-" MUSTER_VERSION, "compiler", "cc", "platform", platform);
}

/* ---- OpenAPI ---- */

static json_t *openapi_root(const struct api *api)
{
    (void)api;
    return json_pack("{s:{s:{s:s}, s:{s:s}}}", "paths", "api/v1", "serverRelativeURL",
                     "/openapi/v3/api/v1", "apis/kubeflow.org/v1", "serverRelativeURL",
                     "/openapi/v3/apis/kubeflow.org/v1");
}

static json_t *patch_operation(const struct resource *resource)
{
    return json_pack(
        "{s:{s:{s:{}, s:{}}}, s:[{s:s, s:s, s:{s:s}}, {s:s, s:s, s:{s:s}}], s:{s:{s:s}}, s:s, "
        "s:{s:s, s:s, s:s}}",
        "requestBody", "content", "application/json-patch+json", "application/merge-patch+json",
        "parameters", "name", "fieldValidation", "in", "query", "schema", "type", "string", "name",
        "dryRun", "in", "query", "schema", "type", "string", "responses", "200", "description",
        "OK", "x-kubernetes-action", "patch", "x-kubernetes-group-version-kind", "group",
        resource->group, "version", "v1", "kind", resource->kind);
}

/* By it kubectl explain finds the kind of a resource. */
static json_t *get_operation(const struct resource *resource)
{
    return json_pack("{s:{s:{s:s}}, s:s, s:{s:s, s:s, s:s}}", "responses", "200", "description",
                     "OK", "x-kubernetes-action", "get", "x-kubernetes-group-version-kind", "group",
                     resource->group, "version", "v1", "kind", resource->kind);
}

static json_t *openapi_of(const char *for_group, const char *prefix)
{
    struct build b = {0};
    json_t *doc = build_value(&b, json_object());
    build_text(&b, doc, "openapi", "3.0.0");
    build_set(&b, doc, "info",
              json_pack("{s:s, s:s}", "title", "muster", "version", MUSTER_VERSION));
    json_t *paths = build_object_at(&b, doc, "paths");
    for (size_t i = 0; i < resource_count; i++) {
        const struct resource *resource = &resources[i];
        char path[128];
        if (strcmp(resource->group, for_group) != 0) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s%s%s/{name}", prefix,
                       resource->namespaced ? "/namespaces/{namespace}/" : "/", resource->plural);
        build_set(&b, build_object_at(&b, paths, path), "patch", patch_operation(resource));
        build_set(&b, build_object_at(&b, paths, path), "get", get_operation(resource));
    }
    build_object_at(&b, build_object_at(&b, doc, "components"), "schemas");
    return build_end(&b, doc);
}

static json_t *openapi_core(const struct api *api)
{
    (void)api;
    return openapi_of("", "/api/v1");
}

/* Of our group, with the schema: kubectl explain. */
static json_t *openapi_custom(const struct api *api)
{
    struct build b = {0};
    json_t *doc = build_value(&b, openapi_of(custom_group, "/apis/kubeflow.org/v1"));
    if (!api->hooks.definition) {
        return doc;
    }
    muster_auto(doc) json_t *made = build_value(&b, api->hooks.definition());
    json_t *schema = doc_at(made, "spec.versions.0.schema.openAPIV3Schema");
    json_t *schemas = build_object_at(&b, build_object_at(&b, doc, "components"), "schemas");
    build_set(&b, schema, "x-kubernetes-group-version-kind",
              json_pack("[{s:s, s:s, s:s}]", "group", custom_group, "version", "v1", "kind",
                        "PyTorchJob"));
    build_set(&b, schemas, "org.kubeflow.v1.PyTorchJob", json_incref(schema));
    return build_end(&b, doc);
}

/* For clients before OpenAPI v3: a document without definitions, so that they check nothing. */
static json_t *openapi_v2(const struct api *api)
{
    (void)api;
    return json_pack("{s:s, s:{s:s, s:s}, s:{}, s:{}}", "swagger", "2.0", "info", "title", "muster",
                     "version", MUSTER_VERSION, "paths", "definitions");
}

/* ---- routes ---- */

static const struct page {
    const char *path;
    json_t *(*make)(const struct api *api); /* NULL: "ok" */
} pages[] = {
    {"/api", core_versions},
    {"/apis", groups},
    {"/apis/kubeflow.org", group},
    {"/api/v1", core_resources},
    {"/apis/kubeflow.org/v1", custom_resources},
    {"/apis/authorization.k8s.io/v1", review_resources},
    {"/apis/apiextensions.k8s.io/v1", definition_resources},
    {"/version", version},
    {"/openapi/v3", openapi_root},
    {"/openapi/v3/api/v1", openapi_core},
    {"/openapi/v3/apis/kubeflow.org/v1", openapi_custom},
    {"/openapi/v2", openapi_v2},
    {"/healthz", NULL},
    {"/readyz", NULL},
    {"/livez", NULL},
};

bool discovery_handle(const struct api *api, const struct http_request *request,
                      struct http_reply *reply)
{
    size_t length = strlen(request->path);
    while (length > 1 && request->path[length - 1] == '/') {
        length--;
    }
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        const struct page *page = &pages[i];
        if (strlen(page->path) != length || strncmp(page->path, request->path, length) != 0) {
            continue;
        }
        const char *accept = http_header(request, "Accept");
        if (page->make == openapi_v2 && accept && strstr(accept, "proto-openapi") &&
            !strstr(accept, "json")) {
            http_reply_send(reply, 200, OPENAPI_V2_TYPE, "", 0); /* an empty message */
        } else if (page->make) {
            api_send_json(reply, 200, page->make(api));
        } else {
            http_reply_send(reply, 200, "text/plain", "ok", 2);
        }
        return true;
    }
    return false;
}
