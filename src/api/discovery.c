/* Answers what clients ask before they ask for objects: groups, resources, version, health.
 *
 * Layer: services.
 */
#include "api/architecture.h"
#include "api/internal.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"

#include <stdio.h>
#include <string.h>

enum { GROUP_BYTES = 128 };

static const char custom_group[] = RESOURCE_CUSTOM_GROUP;

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
    static const char *const in_vain[] = {"delete", "deletecollection", "get", "list", "watch",
                                          NULL};
    json_t *entry = build_value(b, json_object());
    build_text(b, entry, "name", resource->plural);
    build_text(b, entry, "singularName", resource->singular);
    build_set(b, entry, "namespaced", json_boolean(resource->namespaced));
    build_text(b, entry, "kind", resource->kind);
    build_set(b, entry, "verbs", words(b, resource->instead ? in_vain : all));
    if (*resource->short_name) {
        build_add(b, build_array_at(b, entry, "shortNames"), json_string(resource->short_name));
    }
    if (resource_is_custom(resource) || strcmp(resource->plural, "pods") == 0 ||
        strcmp(resource->plural, "services") == 0) {
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

static json_t *entry_beside(struct build *b, const struct beside_kind *kind)
{
    json_t *entry = build_value(b, json_object());
    build_text(b, entry, "name", kind->plural);
    build_text(b, entry, "singularName", kind->singular);
    build_set(b, entry, "namespaced", json_false());
    build_text(b, entry, "kind", kind->kind);
    build_set(b, entry, "verbs", words(b, kind->verbs));
    if (kind->short_names[0]) {
        build_set(b, entry, "shortNames", words(b, kind->short_names));
    }
    return entry;
}

static json_t *resource_list(const char *group_version)
{
    struct build b = {0};
    json_t *list = build_value(&b, json_object());
    build_text(&b, list, "kind", "APIResourceList");
    build_text(&b, list, "apiVersion", "v1");
    build_text(&b, list, "groupVersion", group_version);
    json_t *entries = build_array_at(&b, list, "resources");
    for (size_t i = 0; i < resource_count; i++) {
        if (strcmp(resources[i].api_version, group_version) != 0) {
            continue;
        }
        build_add(&b, entries, entry(&b, &resources[i]));
        for (size_t s = 0; s < subresource_count; s++) {
            if (resources[i].subresources & subresources[s].bit) {
                build_add(&b, entries, entry_below(&b, &resources[i], &subresources[s]));
            }
        }
    }
    for (size_t i = 0; i < beside_kind_count; i++) {
        if (strcmp(beside_kinds[i].api_version, group_version) == 0) {
            build_add(&b, entries, entry_beside(&b, &beside_kinds[i]));
        }
    }
    return build_end(&b, list);
}

static json_t *core_resources(const struct api *api)
{
    (void)api;
    return resource_list("v1");
}

/* ---- groups ---- */

static json_t *core_versions(const struct api *api)
{
    (void)api;
    return json_pack("{s:s, s:[s], s:[]}", "kind", "APIVersions", "versions", "v1",
                     "serverAddressByClientCIDRs");
}

static json_t *version_entry(const char *group, const char *version)
{
    char group_version[GROUP_BYTES];
    (void)snprintf(group_version, sizeof group_version, "%s/%s", group, version);
    return json_pack("{s:s, s:s}", "groupVersion", group_version, "version", version);
}

/* The first version of the group is the preferred one. */
static json_t *group_entry(struct build *b, const char *group)
{
    json_t *entry = build_value(b, json_object());
    build_text(b, entry, "name", group);
    json_t *versions = build_array_at(b, entry, "versions");
    const char *last = "";
    for (size_t i = 0; i < resource_count; i++) {
        if (strcmp(resources[i].group, group) == 0 && strcmp(resources[i].version, last) != 0) {
            last = resources[i].version;
            build_add(b, versions, version_entry(group, last));
        }
    }
    if (json_array_size(versions) == 0) {
        build_add(b, versions, version_entry(group, "v1")); /* beside_kinds */
    }
    build_set(b, entry, "preferredVersion", json_incref(json_array_get(versions, 0)));
    return entry;
}

static bool is_first_of_group(size_t i)
{
    for (size_t before = 0; before < i; before++) {
        if (strcmp(resources[before].group, resources[i].group) == 0) {
            return false;
        }
    }
    return true;
}

static bool is_first_beside(size_t i)
{
    return i == 0 || strcmp(beside_kinds[i - 1].group, beside_kinds[i].group) != 0;
}

static json_t *groups(const struct api *api)
{
    (void)api;
    struct build b = {0};
    json_t *list = json_pack("{s:s, s:s}", "kind", "APIGroupList", "apiVersion", "v1");
    list = build_value(&b, list);
    json_t *entries = build_array_at(&b, list, "groups");
    build_add(&b, entries, group_entry(&b, custom_group));
    for (size_t i = 0; i < resource_count; i++) {
        if (*resources[i].group && !resource_is_custom(&resources[i]) && is_first_of_group(i)) {
            build_add(&b, entries, group_entry(&b, resources[i].group));
        }
    }
    for (size_t i = 0; i < beside_kind_count; i++) {
        if (is_first_beside(i)) {
            build_add(&b, entries, group_entry(&b, beside_kinds[i].group));
        }
    }
    return build_end(&b, list);
}

static json_t *group_page(const char *group)
{
    struct build b = {0};
    json_t *entry = group_entry(&b, group);
    build_text(&b, entry, "kind", "APIGroup");
    build_text(&b, entry, "apiVersion", "v1");
    return build_end(&b, entry);
}

/* Returns the answer for "GROUP" or "GROUP/VERSION", or NULL if the tables have no such group. */
static json_t *of_group(const char *rest)
{
    bool group = false, version = false;
    for (size_t i = 0; i < resource_count; i++) {
        bool core = !*resources[i].group;
        group = group || (!core && strcmp(resources[i].group, rest) == 0);
        version = version || (!core && strcmp(resources[i].api_version, rest) == 0);
    }
    for (size_t i = 0; i < beside_kind_count; i++) {
        group = group || strcmp(beside_kinds[i].group, rest) == 0;
        version = version || strcmp(beside_kinds[i].api_version, rest) == 0;
    }
    return group ? group_page(rest) : version ? resource_list(rest) : NULL;
}

/* ---- version ---- */

static json_t *version(const struct api *api)
{
    (void)api;
    char architecture[ARCHITECTURE_BYTES];
    char platform[ARCHITECTURE_BYTES + 8];
    architecture_name(architecture);
    (void)snprintf(platform, sizeof platform, "linux/%s", architecture);
    /* major and minor are those of the Kubernetes API, because clients compare them. Typed clients
     * insist on the fields about Go; only their names are true. */
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "buildDate",
                     "1970-01-01T00:00:00Z", "gitCommit", "", "gitTreeState", "", "goVersion", "",
                     "major", "1", "minor", "32", "gitVersion", "v1.32.0+muster-" MUSTER_VERSION,
                     "compiler", "cc", "platform", platform);
}

/* ---- routes ---- */

static const struct page {
    const char *path;
    json_t *(*make)(const struct api *api); /* NULL: "ok" */
} pages[] = {
    {"/api", core_versions}, {"/apis", groups},  {"/api/v1", core_resources},
    {"/version", version},   {"/healthz", NULL}, {"/readyz", NULL},
    {"/livez", NULL},
};

static bool handle_group(const char *path, size_t length, struct http_reply *reply)
{
    static const char groups_prefix[] = "/apis/";
    size_t skipped = sizeof groups_prefix - 1;
    char rest[GROUP_BYTES];
    if (strncmp(path, groups_prefix, skipped) != 0 || length - skipped >= sizeof rest) {
        return false;
    }
    memcpy(rest, path + skipped, length - skipped);
    rest[length - skipped] = '\0';
    json_t *found = of_group(rest);
    if (found) {
        api_send_json(reply, 200, found);
    }
    return found;
}

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
        if (page->make) {
            api_send_json(reply, 200, page->make(api));
        } else {
            http_reply_send(reply, 200, "text/plain", "ok", 2);
        }
        return true;
    }
    return handle_group(request->path, length, reply);
}
