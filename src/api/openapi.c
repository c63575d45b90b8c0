/* The OpenAPI documents. kubectl create and apply look in them for one thing, that every patch
 * takes fieldValidation; kubectl explain for the fields of a kind.
 *
 * Layer: services.
 */
#include "api/internal.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 192 };

#define OPENAPI_V2_TYPE "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

static const char prefix[] = "/openapi/v3";

/* Writes the path under which the API has the objects: "api/v1", "apis/kubeflow.org/v1". */
static void root_of(const struct resource *resource, char ret[PATH_BYTES])
{
    (void)snprintf(ret, PATH_BYTES, "%s/%s", *resource->group ? "apis" : "api",
                   resource->api_version);
}

/* ---- the index of the documents ---- */

static json_t *root(void)
{
    struct build b = {0};
    json_t *doc = build_value(&b, json_object());
    json_t *paths = build_object_at(&b, doc, "paths");
    for (size_t i = 0; i < resource_count; i++) {
        char path[PATH_BYTES];
        char url[PATH_BYTES + sizeof prefix];
        root_of(&resources[i], path);
        (void)snprintf(url, sizeof url, "%s/%s", prefix, path);
        build_set(&b, paths, path, json_pack("{s:s}", "serverRelativeURL", url));
    }
    return build_end(&b, doc);
}

/* ---- one document ---- */

static json_t *kind_of(const struct resource *resource)
{
    return json_pack("{s:s, s:s, s:s}", "group", resource->group, "version", resource->version,
                     "kind", resource->kind);
}

static json_t *patch_operation(const struct resource *resource)
{
    return json_pack(
        "{s:{s:{s:{}, s:{}}}, s:[{s:s, s:s, s:{s:s}}, {s:s, s:s, s:{s:s}}], "
        "s:{s:{s:s}}, s:s, s:o}",
        "requestBody", "content", "application/json-patch+json", "application/merge-patch+json",
        "parameters", "name", "fieldValidation", "in", "query", "schema", "type", "string", "name",
        "dryRun", "in", "query", "schema", "type", "string", "responses", "200", "description",
        "OK", "x-kubernetes-action", "patch", "x-kubernetes-group-version-kind", kind_of(resource));
}

/* Returns the operation by which kubectl explain finds the kind of a resource. */
static json_t *get_operation(const struct resource *resource)
{
    return json_pack("{s:{s:{s:s}}, s:s, s:o}", "responses", "200", "description", "OK",
                     "x-kubernetes-action", "get", "x-kubernetes-group-version-kind",
                     kind_of(resource));
}

static json_t *schema_of_absent(const struct resource *resource)
{
    char words[PATH_BYTES];
    (void)snprintf(words, sizeof words, "There are none here: %s.", resource->instead);
    return json_pack("{s:s, s:s, s:{}}", "type", "object", "description", words, "properties");
}

static void add_schema(struct build *b, const struct api *api, json_t *schemas,
                       const struct resource *resource)
{
    char name[PATH_BYTES];
    json_t *schema = resource->instead   ? schema_of_absent(resource)
                     : api->hooks.schema ? api->hooks.schema(resource->api_version, resource->kind)
                                         : NULL;
    if (!schema) {
        return; /* the fields are not known */
    }
    (void)snprintf(name, sizeof name, "%s%s%s.%s", resource->group, *resource->group ? "." : "",
                   resource->version, resource->kind);
    build_add(b, build_array_at(b, schema, "x-kubernetes-group-version-kind"), kind_of(resource));
    build_set(b, schemas, name, schema);
}

/* Whether the two are the same path, except for slashes at the end. */
static bool is_path(const char *path, const char *wanted)
{
    size_t length = strlen(path);
    return strncmp(wanted, path, length) == 0 &&
           wanted[length + strspn(wanted + length, "/")] == '\0';
}

static json_t *document(const struct api *api, const char *wanted)
{
    struct build b = {0};
    json_t *doc = build_value(&b, json_object());
    build_text(&b, doc, "openapi", "3.0.0");
    build_set(&b, doc, "info",
              json_pack("{s:s, s:s}", "title", "muster", "version", MUSTER_VERSION));
    json_t *paths = build_object_at(&b, doc, "paths");
    json_t *schemas = build_object_at(&b, build_object_at(&b, doc, "components"), "schemas");
    for (size_t i = 0; i < resource_count; i++) {
        const struct resource *resource = &resources[i];
        char path[PATH_BYTES];
        char place[2 * PATH_BYTES];
        root_of(resource, path);
        if (!is_path(path, wanted)) {
            continue;
        }
        (void)snprintf(place, sizeof place, "/%s%s%s/{name}", path,
                       resource->namespaced ? "/namespaces/{namespace}/" : "/", resource->plural);
        build_set(&b, build_object_at(&b, paths, place), "patch", patch_operation(resource));
        build_set(&b, build_object_at(&b, paths, place), "get", get_operation(resource));
        add_schema(&b, api, schemas, resource);
    }
    if (json_object_size(paths) == 0) {
        json_decref(build_end(&b, doc));
        return NULL;
    }
    return build_end(&b, doc);
}

/* ---- version 2 ---- */

/* Clients that do not know OpenAPI v3 get a document without definitions, so that they check
 * nothing; in protobuf it is an empty message. */
static void send_v2(const struct http_request *request, struct http_reply *reply)
{
    const char *accept = http_header(request, "Accept");
    if (accept && strstr(accept, "proto-openapi") && !strstr(accept, "json")) {
        http_reply_send(reply, 200, OPENAPI_V2_TYPE, "", 0);
        return;
    }
    api_send_json(reply, 200,
                  json_pack("{s:s, s:{s:s, s:s}, s:{}, s:{}}", "swagger", "2.0", "info", "title",
                            "muster", "version", MUSTER_VERSION, "paths", "definitions"));
}

bool openapi_handle(const struct api *api, const struct http_request *request,
                    struct http_reply *reply)
{
    size_t length = sizeof prefix - 1;
    if (strcmp(request->path, "/openapi/v2") == 0) {
        send_v2(request, reply);
        return true;
    }
    if (strncmp(request->path, prefix, length) != 0) {
        return false;
    }
    const char *rest = request->path + length;
    json_t *doc = !*rest || strcmp(rest, "/") == 0 ? root()
                  : *rest == '/'                   ? document(api, rest + 1)
                                                   : NULL;
    if (doc) {
        api_send_json(reply, 200, doc);
    }
    return doc;
}
