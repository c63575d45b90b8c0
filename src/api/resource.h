/* The table of resources, and how a path names one.
 *
 * Layer: services, pure. Ownership: static tables; a route borrows nothing, it copies.
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>

struct column;
struct shape;

enum {
    RESOURCE_STATUS = 1,
    RESOURCE_SCALE = 2,
    RESOURCE_LOG = 4,
    RESOURCE_EVICTION = 8,
    RESOURCE_STREAMS = 16, /* exec, attach */
};

struct subresource {
    int bit; /* RESOURCE_… */
    const char *name;
    const char *group, *kind; /* of the object that is sent; NULL: the resource's own */
    const char *verbs[4];     /* ends with NULL */
};

extern const struct subresource subresources[];
extern const size_t subresource_count;

struct resource {
    const char *group;       /* "" is the core group */
    const char *version;     /* "v1" */
    const char *api_version; /* "v1" or "kubeflow.org/v1" */
    const char *plural;
    const char *singular;
    const char *kind;
    const char *short_name; /* "" for none */
    bool namespaced;
    int subresources;             /* bits */
    const struct column *columns; /* ends with a column without a name */
    const char *fields;
    const struct shape *shape;
    const char *instead; /* absent.def: what to use in place of this kind; NULL otherwise */
};

extern const struct resource resources[];
extern const size_t resource_count;

/* The group that a CustomResourceDefinition would make on a cluster. */
#define RESOURCE_CUSTOM_GROUP "kubeflow.org"

bool resource_is_custom(const struct resource *resource);

/* Returns "pods" or "pytorchjobs.kubeflow.org", the name in messages. */
const char *resource_qualified(const struct resource *resource, char *ret, size_t room);

enum { ROUTE_NAME_BYTES = 254 };

/* What a path under /api or /apis addresses. */
struct route {
    const struct resource *resource;
    char namespace[ROUTE_NAME_BYTES]; /* "": all, or none */
    char name[ROUTE_NAME_BYTES];      /* "": the collection */
    char subresource[16];             /* "" or a subresource that the resource has */
};

/* Reads /api/v1/… or /apis/GROUP/v1/…; returns false if the path names no resource of ours. */
bool route_parse(const char *path, struct route *ret);
