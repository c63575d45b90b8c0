/* Table output: what `kubectl get` asks for, so that the server decides the columns.
 *
 * Layer: services. Source: meta.k8s.io/v1 Table.
 */
#include "api/columns/columns.h"
#include "api/internal.h"

#include "base/build.h"
#include "base/time/clock.h"

#include <string.h>

/* Accept lists types by preference; only the first counts here, as kubectl sends it. */
bool table_wanted(const struct http_request *request)
{
    const char *accept = http_header(request, "Accept");
    const char *comma = accept ? strchrnul(accept, ',') : NULL;
    const char *as = accept ? strstr(accept, "as=Table") : NULL;
    const char *group = accept ? strstr(accept, "g=meta.k8s.io") : NULL;
    return as && group && as < comma && group < comma;
}

static json_t *definition(struct build *b, const struct column *column)
{
    json_t *definition = build_value(b, json_object());
    build_text(b, definition, "name", column->name);
    build_text(b, definition, "type", column->type);
    build_text(b, definition, "format", strcmp(column->name, "Name") == 0 ? "name" : "");
    build_text(b, definition, "description", "");
    build_int(b, definition, "priority", column->priority);
    return definition;
}

/* What a row carries: by default metadata alone, enough for labels and names. */
static json_t *row_object(struct build *b, json_t *object, const char *include)
{
    if (include && strcmp(include, "Object") == 0) {
        return json_incref(object);
    }
    json_t *partial = build_value(b, json_object());
    build_text(b, partial, "kind", "PartialObjectMetadata");
    build_text(b, partial, "apiVersion", "meta.k8s.io/v1");
    build_set(b, partial, "metadata", json_incref(json_object_get(object, "metadata")));
    return partial;
}

static json_t *row(struct build *b, const struct resource *resource, json_t *object,
                   const char *include, int64_t now_unix_ms)
{
    json_t *row = build_value(b, json_object());
    json_t *cells = build_array_at(b, row, "cells");
    for (const struct column *c = resource->columns; c->name; c++) {
        build_add(b, cells, column_cell(c, object, now_unix_ms));
    }
    if (!include || strcmp(include, "None") != 0) {
        build_set(b, row, "object", row_object(b, object, include));
    }
    return row;
}

json_t *table_make(const struct resource *resource, const json_t *items, const json_t *list_meta,
                   const struct http_request *request)
{
    struct build b = {0};
    const char *include = http_query(request, "includeObject");
    int64_t now_unix_ms = clock_unix_ms();
    json_t *table = build_value(&b, json_object());
    build_text(&b, table, "kind", "Table");
    build_text(&b, table, "apiVersion", "meta.k8s.io/v1");
    if (list_meta) {
        build_set(&b, table, "metadata", json_incref((json_t *)list_meta));
    } else {
        build_object_at(&b, table, "metadata");
    }
    json_t *definitions = build_array_at(&b, table, "columnDefinitions");
    for (const struct column *c = resource->columns; c->name; c++) {
        build_add(&b, definitions, definition(&b, c));
    }
    json_t *rows = build_array_at(&b, table, "rows");
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        build_add(&b, rows, row(&b, resource, item, include, now_unix_ms));
    }
    return build_end(&b, table);
}
