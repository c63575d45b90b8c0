/* See custom_columns.h. Columns stand as Go's tabwriter puts them with kubectl's settings. */
#include "cli/show/custom_columns.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/show/jsonpath.h"
#include "cli/show/table.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 64, GAP = 3, WIDTH_MIN = 6, TEXT_BYTES_MAX = 64 << 20 };

struct column {
    char *header;
    struct jsonpath *field;
    size_t width;
};

struct custom_columns {
    struct column list[COLUMNS_MAX];
    size_t count;
    bool headers;
};

/* The length of a column's text: it ends at a comma that is outside of brackets and quotes. */
static size_t spec_length(const char *text)
{
    int depth = 0;
    char quote = '\0';
    size_t at = 0;
    for (; text[at]; at++) {
        char c = text[at];
        if (quote) {
            quote = c == quote ? '\0' : quote;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '[' || c == '(') {
            depth++;
        } else if (c == ']' || c == ')') {
            depth--;
        } else if (c == ',' && depth <= 0) {
            break;
        }
    }
    return at;
}

static int read_column(const char *spec, struct column *ret, struct muster_err *err)
{
    const char *colon = strchr(spec, ':');
    if (!colon) {
        return muster_fail(err, MUSTER_EINVAL,
                           "custom-columns: '%s' must be HEADER:FIELD, such as "
                           "NAME:.metadata.name",
                           spec);
    }
    ret->header = strndup(spec, (size_t)(colon - spec));
    int r = ret->header ? jsonpath_parse_field(colon + 1, &ret->field, err) : err_no_memory(err);
    return r < 0 ? muster_wrap(err, "custom-columns: %.*s", (int)(colon - spec), spec) : 0;
}

int custom_columns_parse(const char *text, struct custom_columns **ret, struct muster_err *err)
{
    struct custom_columns *columns = calloc(1, sizeof *columns);
    int r = columns ? 0 : err_no_memory(err);
    bool more = true;
    while (r == 0 && more) {
        size_t length = spec_length(text);
        muster_auto(free) char *spec = strndup(text, length);
        if (!spec) {
            r = err_no_memory(err);
        } else if (columns->count == COLUMNS_MAX) {
            r = muster_fail(err, MUSTER_EINVAL, "custom-columns: more than %d", COLUMNS_MAX);
        } else {
            r = read_column(spec, &columns->list[columns->count++], err);
        }
        more = text[length] == ',';
        text += length + more;
    }
    if (r < 0) {
        custom_columns_free(columns);
        return r;
    }
    columns->headers = true;
    *ret = columns;
    return 0;
}

void custom_columns_free(struct custom_columns *columns)
{
    for (size_t i = 0; columns && i < columns->count; i++) {
        free(columns->list[i].header);
        jsonpath_free(columns->list[i].field);
    }
    free(columns);
}

void custom_columns_without_headers(struct custom_columns *columns)
{
    columns->headers = false;
}

/* Appends the cells of a row, each ended by a NUL. */
static int add_row(struct custom_columns *columns, const json_t *object, struct buf *cells,
                   struct muster_err *err)
{
    int r = 0;
    for (size_t i = 0; i < columns->count && r == 0; i++) {
        r = jsonpath_print_cell(columns->list[i].field, object, cells, err);
        buf_add(cells, "", 1);
    }
    return r;
}

static void widen(struct column *column, const char *cell)
{
    size_t width = table_width(cell) + GAP;
    width = width < WIDTH_MIN ? WIDTH_MIN : width;
    column->width = width > column->width ? width : column->width;
}

static void put_cell(const struct custom_columns *columns, size_t i, const char *cell,
                     struct buf *out)
{
    bool last = i + 1 == columns->count;
    size_t width = table_width(cell);
    buf_format(out, "%s%*s%s", cell, last ? 0 : (int)(columns->list[i].width - width), "",
               last ? "\n" : "");
}

static void put_rows(struct custom_columns *columns, const struct buf *cells, struct buf *out)
{
    const char *end = cells->data + cells->used;
    size_t i = 0;
    for (size_t k = 0; k < columns->count && columns->headers; k++) {
        widen(&columns->list[k], columns->list[k].header);
    }
    for (const char *at = cells->data; at < end; at += strlen(at) + 1, i++) {
        widen(&columns->list[i % columns->count], at);
    }
    for (size_t k = 0; k < columns->count && columns->headers; k++) {
        put_cell(columns, k, columns->list[k].header, out);
    }
    columns->headers = false;
    i = 0;
    for (const char *at = cells->data; at < end; at += strlen(at) + 1, i++) {
        put_cell(columns, i % columns->count, at, out);
    }
}

int custom_columns_print(struct custom_columns *columns, const json_t *doc, struct buf *out,
                         struct muster_err *err)
{
    struct buf cells;
    buf_init(&cells, TEXT_BYTES_MAX);
    const json_t *items = json_object_get(doc, "items");
    int r = 0;
    if (json_is_array(items)) {
        size_t i;
        json_t *item;
        json_array_foreach (items, i, item) {
            r = r < 0 ? r : add_row(columns, item, &cells, err);
        }
    } else {
        r = add_row(columns, doc, &cells, err);
    }
    if (r == 0 && buf_failed(&cells)) {
        r = muster_fail(err, MUSTER_ETOOBIG, "custom-columns: the output is too long");
    }
    if (r == 0) {
        put_rows(columns, &cells, out);
    }
    buf_done(&cells);
    return r;
}
