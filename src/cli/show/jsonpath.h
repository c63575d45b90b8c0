/* kubectl's JSONPath templates: text with {expressions}.
 *
 *   {.metadata.name}{"\n"}{range .items[*]}{.name} {.ports[?(@.name=="x")].port}{end}
 *
 * The dialect is that of k8s.io/client-go/util/jsonpath, with its corners: a dot in a key is
 * written \., keys that are missing give nothing, several values of an expression are separated by
 * a space. Where Go's maps have no order (.. and .*), here the document's is kept.
 *
 * jsonpath_parse.c reads a template, jsonpath_eval.c finds its values, jsonpath_print.c writes
 * them.
 *
 * Layer: cli; pure. Ownership: parse/free; the rest borrows.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <muster/err.h>
#include <stddef.h>

struct jsonpath;

/* Parses a template. MUSTER_EINVAL says what is wrong and at which character of `text` (from 1). */
int jsonpath_parse(const char *text, struct jsonpath **ret, struct muster_err *err);
/* Parses a field as custom-columns have it: x.y, .x.y, {x.y} or {.x.y}. */
int jsonpath_parse_field(const char *text, struct jsonpath **ret, struct muster_err *err);
void jsonpath_free(struct jsonpath *path);

/* Appends the template's output for the document; on an error (MUSTER_EINVAL), nothing. */
int jsonpath_print(const struct jsonpath *path, const json_t *doc, struct buf *out,
                   struct muster_err *err);

/* Appends the values as a cell of custom-columns: separated by commas, "<none>" when there is none;
 * objects and lists in Go's words (map[a:1 b:2], [1 2]). */
int jsonpath_print_cell(const struct jsonpath *path, const json_t *doc, struct buf *out,
                        struct muster_err *err);
