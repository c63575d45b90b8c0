/* The columns that `kubectl get` shows of each resource, and how their cells come from an object.
 *
 * Layer: services, pure: the time is an argument. Ownership: static tables.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdint.h>

struct column {
    const char *name; /* NULL ends a table */
    const char *type; /* "string", "integer" */
    int priority;     /* 0: always; 1: with -o wide */
    const char *path; /* the path of a field with the text; or */
    void (*cell)(const json_t *object, int64_t now_unix_ms, struct buf *out);
};

#define COLUMN_TABLES(X)                                                                           \
    X(config_map)                                                                                  \
    X(event) X(namespace) X(node) X(claim) X(pod) X(secret) X(service) X(job) X(absent)

#define X(name) extern const struct column columns_##name[];
COLUMN_TABLES(X)
#undef X

/* Returns a new string or integer, or NULL when out of memory. */
json_t *column_cell(const struct column *column, const json_t *object, int64_t now_unix_ms);

/* ---- what the tables' files share ---- */

/* Writes the cell "Age". */
void column_age(const json_t *object, int64_t now_unix_ms, struct buf *out);
