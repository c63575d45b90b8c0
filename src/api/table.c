/* See table.h: kubectl get asks for one, so that the server decides the columns. */
#include "api/table.h"

#include "api/columns/columns.h"
#include "api/shape/shape.h"

#include "base/build.h"
#include "base/time/clock.h"

#include <string.h>

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

json_t *table_partial(const char *api_version, json_t *object)
{
    struct build b = {0};
    json_t *partial = build_value(&b, json_object());
    build_text(&b, partial, "kind", "PartialObjectMetadata");
    build_text(&b, partial, "apiVersion", api_version);
    build_set(&b, partial, "metadata", json_incref(json_object_get(object, "metadata")));
    return build_end(&b, partial);
}

static json_t *row(struct build *b, const struct resource *resource, json_t *object,
                   int64_t now_unix_ms)
{
    json_t *row = build_value(b, json_object());
    json_t *cells = build_array_at(b, row, "cells");
    for (const struct column *c = resource->columns; c->name; c++) {
        build_add(b, cells, column_cell(c, object, now_unix_ms));
    }
    return row;
}

json_t *table_make(const char *api_version, enum table_rows rows, const struct resource *resource,
                   const json_t *items, json_t *list_meta)
{
    struct build b = {0};
    int64_t now_unix_ms = clock_unix_ms();
    json_t *table = build_value(&b, json_object());
    build_text(&b, table, "kind", "Table");
    build_text(&b, table, "apiVersion", api_version);
    if (list_meta) {
        build_set(&b, table, "metadata", json_incref(list_meta));
    } else {
        build_object_at(&b, table, "metadata");
    }
    json_t *definitions = build_array_at(&b, table, "columnDefinitions");
    for (const struct column *c = resource->columns; c->name; c++) {
        build_add(&b, definitions, definition(&b, c));
    }
    json_t *entries = build_array_at(&b, table, "rows");
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        json_t *entry = row(&b, resource, item, now_unix_ms);
        if (rows != ROWS_NONE) {
            build_set(&b, entry, "object",
                      rows == ROWS_OBJECT ? shape_show(resource->shape, item)
                                          : table_partial(api_version, item));
        }
        build_add(&b, entries, entry);
    }
    return build_end(&b, table);
}
