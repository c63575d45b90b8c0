/* See table.h. */
#include "cli/show/table.h"

#include "base/doc.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { GAP = 3, CELL_BYTES = 512 };

size_t table_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80; /* not a UTF-8 continuation */
    }
    return width;
}

static void cell_text(const json_t *cell, char *ret, size_t size)
{
    if (json_is_string(cell)) {
        snprintf(ret, size, "%s", json_string_value(cell));
    } else if (json_is_integer(cell)) {
        snprintf(ret, size, "%lld", (long long)json_integer_value(cell));
    } else if (json_is_boolean(cell)) {
        snprintf(ret, size, "%s", json_is_true(cell) ? "true" : "false");
    } else {
        snprintf(ret, size, "<none>");
    }
}

/* The visible cells of a row (row NULL: the headers), from left to right. */
struct line {
    char cells[TABLE_COLUMNS_MAX][CELL_BYTES];
    size_t count;
};

static void header_text(const json_t *column, char *ret, size_t size)
{
    snprintf(ret, size, "%s", doc_text(column, "name", ""));
    for (char *c = ret; *c; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
}

static void make_line(const struct table *table, const json_t *data, const json_t *row,
                      struct line *line)
{
    line->count = 0;
    if (table->namespace) {
        snprintf(line->cells[line->count++], CELL_BYTES, "%s",
                 row ? doc_text(row, "object.metadata.namespace", "") : "NAMESPACE");
    }
    size_t i;
    json_t *column;
    json_array_foreach (doc_at(data, "columnDefinitions"), i, column) {
        if (line->count == TABLE_COLUMNS_MAX || (!table->wide && doc_int(column, "priority", 0))) {
            continue;
        }
        char *cell = line->cells[line->count++];
        if (row) {
            cell_text(json_array_get(json_object_get(row, "cells"), i), cell, CELL_BYTES);
        } else {
            header_text(column, cell, CELL_BYTES);
        }
    }
}

static void widen(struct table *table, const struct line *line)
{
    for (size_t i = 0; i < line->count; i++) {
        size_t width = table_width(line->cells[i]);
        table->width[i] = width > table->width[i] ? width : table->width[i];
    }
}

static void put_line(const struct table *table, const struct line *line, struct buf *out)
{
    for (size_t i = 0; i < line->count; i++) {
        buf_text(out, line->cells[i]);
        if (i + 1 < line->count) {
            size_t pad = table->width[i] + GAP - table_width(line->cells[i]);
            buf_format(out, "%*s", (int)pad, "");
        }
    }
    buf_text(out, "\n");
}

void table_print(struct table *table, const json_t *data, struct buf *out)
{
    const json_t *rows = doc_at(data, "rows");
    struct line line;
    if (json_array_size(rows) == 0) {
        return;
    }
    make_line(table, data, NULL, &line);
    widen(table, &line);
    size_t i;
    json_t *row;
    json_array_foreach (rows, i, row) {
        make_line(table, data, row, &line);
        widen(table, &line);
    }
    if (table->headers) {
        make_line(table, data, NULL, &line);
        put_line(table, &line, out);
        table->headers = false;
    }
    json_array_foreach (rows, i, row) {
        make_line(table, data, row, &line);
        put_line(table, &line, out);
    }
}

void table_print_cells(const char *const *cells, size_t columns, size_t rows, const char *indent,
                       struct buf *out)
{
    size_t width[TABLE_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < rows * columns; i++) {
        size_t w = table_width(cells[i]);
        width[i % columns] = w > width[i % columns] ? w : width[i % columns];
    }
    for (size_t i = 0; i < rows * columns; i++) {
        bool last = i % columns == columns - 1;
        buf_format(out, "%s%s", i % columns == 0 ? indent : "", cells[i]);
        if (last) {
            buf_text(out, "\n");
        } else {
            buf_format(out, "%*s", (int)(width[i % columns] + 2 - table_width(cells[i])), "");
        }
    }
}
