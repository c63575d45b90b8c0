/* Prints the server's Tables in columns.
 *
 * Layer: cli; pure. A struct table remembers the columns' widths, so that the rows of a watch stay
 * in line.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { TABLE_COLUMNS_MAX = 32 };

/* The number of columns that a text takes: characters, not bytes. */
size_t table_width(const char *text);

struct table {
    bool wide;      /* columns of lower priority too */
    bool namespace; /* a first column with the object's namespace */
    bool headers;   /* false after they were printed */
    size_t width[TABLE_COLUMNS_MAX];
};

/* Appends the rows of a Table object (kind Table, meta.k8s.io/v1); nothing when it has none. */
void table_print(struct table *table, const json_t *data, struct buf *out);

/* The same for rows made here: `cells` of `columns` each, the first row being the headers. */
void table_print_cells(const char *const *cells, size_t columns, size_t rows, const char *indent,
                       struct buf *out);
