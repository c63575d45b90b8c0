/* See resource.h. */
#include "api/resource.h"

#include "api/columns/columns.h"
#include "api/shape/shape.h"

#include <stdio.h>
#include <string.h>

const struct resource resources[] = {
#define RESOURCE(group, plural, singular, kind, short_name, aliases, namespaced, subresources,     \
                 columns, fields, shape)                                                           \
    {group,                                                                                        \
     "v1",                                                                                         \
     sizeof(group) == 1 ? "v1" : group "/v1",                                                      \
     plural,                                                                                       \
     singular,                                                                                     \
     kind,                                                                                         \
     short_name,                                                                                   \
     namespaced,                                                                                   \
     subresources,                                                                                 \
     columns_##columns,                                                                            \
     fields,                                                                                       \
     &shape_##shape,                                                                               \
     NULL},
#include "base/resources.def"
#undef RESOURCE

#define INSTEAD_OF_CONTROLLERS                                                                     \
    "what makes pods is a PyTorchJob (kubeflow.org/v1), or kubectl run for one pod"
#define INSTEAD_OF_AUTOSCALERS                                                                     \
    "kubectl scale pytorchjob NAME --replicas=N changes the workers of an elastic job"
#define ABSENT(group, version, plural, singular, kind, short_name, namespaced, instead)            \
    {group,          version,    sizeof(group) == 1 ? version : group "/" version,                 \
     plural,         singular,   kind,                                                             \
     short_name,     namespaced, 0,                                                                \
     columns_absent, "",         &shape_stored,                                                    \
     instead},
#include "api/absent.def"
#undef ABSENT
};

const size_t resource_count = sizeof resources / sizeof resources[0];

const struct subresource subresources[] = {
    {RESOURCE_STATUS, "status", NULL, NULL, {"get", "patch", "update"}},
    {RESOURCE_SCALE, "scale", "autoscaling", "Scale", {"get", "patch", "update"}},
    {RESOURCE_LOG, "log", NULL, NULL, {"get"}},
    {RESOURCE_EVICTION, "eviction", "policy", "Eviction", {"create"}},
    {RESOURCE_STREAMS, "exec", NULL, "PodExecOptions", {"create", "get"}},
    {RESOURCE_STREAMS, "attach", NULL, "PodAttachOptions", {"create", "get"}},
    {RESOURCE_STREAMS, "portforward", NULL, "PodPortForwardOptions", {"create", "get"}},
};

const size_t subresource_count = sizeof subresources / sizeof subresources[0];

static const struct resource *find(const char *group, const char *version, const char *plural)
{
    for (size_t i = 0; i < resource_count; i++) {
        if (strcmp(resources[i].plural, plural) == 0 && strcmp(resources[i].group, group) == 0 &&
            strcmp(resources[i].version, version) == 0) {
            return &resources[i];
        }
    }
    return NULL;
}

bool resource_is_custom(const struct resource *resource)
{
    return strcmp(resource->group, RESOURCE_CUSTOM_GROUP) == 0;
}

const char *resource_qualified(const struct resource *resource, char *ret, size_t room)
{
    (void)snprintf(ret, room, "%s%s%s", resource->plural, *resource->group ? "." : "",
                   resource->group);
    return ret;
}

/* ---- paths ---- */

/* Reads the next part of a path; returns false at its end, or if the part does not fit. */
static bool next_part(const char **path, char *ret, size_t room)
{
    *path += strspn(*path, "/");
    size_t length = strcspn(*path, "/");
    if (length == 0 || length >= room) {
        return false;
    }
    memcpy(ret, *path, length);
    ret[length] = '\0';
    *path += length;
    return true;
}

static bool at_end(const char *path)
{
    return path[strspn(path, "/")] == '\0';
}

static bool has_subresource(const struct resource *resource, const char *name)
{
    for (size_t i = 0; i < subresource_count; i++) {
        if (strcmp(subresources[i].name, name) == 0) {
            return resource->subresources & subresources[i].bit;
        }
    }
    return false;
}

/* Reads "NAME[/SUBRESOURCE]", which follows the plural. */
static bool parse_name(const char *path, struct route *route)
{
    if (at_end(path)) {
        return true;
    }
    if (!next_part(&path, route->name, sizeof route->name)) {
        return false;
    }
    return at_end(path) || (next_part(&path, route->subresource, sizeof route->subresource) &&
                            at_end(path) && has_subresource(route->resource, route->subresource));
}

/* Reads "[namespaces/NS/]PLURAL…", which follows the group and version. /namespaces/NS and
 * /namespaces/NS/status are the namespace itself. */
static bool parse_resource(const char *path, const char *group, const char *version,
                           struct route *route)
{
    char part[64];
    const char *start = path;
    if (!next_part(&path, part, sizeof part)) {
        return false;
    }
    const char *rest = path;
    if (strcmp(part, "namespaces") == 0 &&
        next_part(&rest, route->namespace, sizeof route->namespace) && !at_end(rest)) {
        const char *inner = rest;
        if (next_part(&inner, part, sizeof part) &&
            (route->resource = find(group, version, part)) && route->resource->namespaced) {
            return parse_name(inner, route);
        }
    }
    route->namespace[0] = '\0';
    next_part(&start, part, sizeof part);
    route->resource = find(group, version, part);
    return route->resource && parse_name(start, route) &&
           (!route->resource->namespaced || !*route->name);
}

bool route_parse(const char *path, struct route *ret)
{
    struct route route = {0};
    char part[64];
    char group[64] = "";
    char version[64];
    if (!next_part(&path, part, sizeof part)) {
        return false;
    }
    if (strcmp(part, "apis") == 0) {
        if (!next_part(&path, group, sizeof group)) {
            return false;
        }
    } else if (strcmp(part, "api") != 0) {
        return false;
    }
    if (!next_part(&path, version, sizeof version) ||
        !parse_resource(path, group, version, &route)) {
        return false;
    }
    *ret = route;
    return true;
}
