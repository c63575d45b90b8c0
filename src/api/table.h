/* The two forms in which an object is not whole: a Table of objects, as kubectl prints it, and an
 * object with its metadata only. Both are of meta.k8s.io, in the version that `api_version` names.
 *
 * Layer: services. Source: meta.k8s.io/v1 Table, PartialObjectMetadata.
 */
#pragma once

#include "api/resource.h"

#include <jansson.h>

/* What the rows of a Table contain. */
enum table_rows { ROWS_METADATA, ROWS_OBJECT, ROWS_NONE };

/* Returns a new PartialObjectMetadata, or NULL when out of memory. */
json_t *table_partial(const char *api_version, json_t *object);

/* Returns a new Table with rows for an array of objects in stored form. `list_meta` (may be NULL)
 * is shared. */
json_t *table_make(const char *api_version, enum table_rows rows, const struct resource *resource,
                   const json_t *items, json_t *list_meta);
