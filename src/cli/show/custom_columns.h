/* -o custom-columns=HEADER:FIELD,…: a row for each object.
 *
 * Layer: cli; pure. Ownership: parse/free. The widths are remembered, so that the rows of a watch
 * stay in line.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>

struct custom_columns;

/* MUSTER_EINVAL names the column that is wrong. */
int custom_columns_parse(const char *text, struct custom_columns **ret, struct muster_err *err);
void custom_columns_free(struct custom_columns *columns);

/* Prints no line of headers from now on. */
void custom_columns_without_headers(struct custom_columns *columns);

/* Appends the object's row, or a row for each item of a List; the first time, the headers come
 * before it. */
int custom_columns_print(struct custom_columns *columns, const json_t *doc, struct buf *out,
                         struct muster_err *err);
