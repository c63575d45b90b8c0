/* Documents: every object of the Kubernetes API (and every message of ours) is a jansson tree.
 *
 * These helpers read one by a dotted path ("spec.runPolicy.suspend", "status.conditions.0.type"). A
 * key that holds dots itself (labels) is read with json_object_get.
 *
 * Layer: base. Ownership: "borrowed" results belong to the tree they came from. Not thread-safe.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline void cleanup_doc(json_t **doc)
{
    json_decref(*doc);
}

/* Returns the value at the path, borrowed, or NULL when a part is missing. JSON null counts as
 * missing. */
json_t *doc_at(const json_t *doc, const char *path);

/* Returns the value, or `fallback` when it is missing or of another type. */
const char *doc_text(const json_t *doc, const char *path, const char *fallback);
int64_t doc_int(const json_t *doc, const char *path, int64_t fallback);
bool doc_bool(const json_t *doc, const char *path, bool fallback);

/* Returns the first element of an array whose text at `path` is `text`, borrowed, or NULL if there
 * is none. */
json_t *doc_find(const json_t *list, const char *path, const char *text);

/* Whether an array has that text. */
bool doc_has_text(const json_t *list, const char *text);

/* Returns a new array of the same elements in order, or NULL when out of memory. */
json_t *doc_sorted(const json_t *list, int (*compare)(const json_t *a, const json_t *b));

/* Compares metadata.resourceVersion, which gives the order in which objects were written. */
int doc_compare_versions(const json_t *a, const json_t *b);

/* Sets a value, and creates the objects on the path; takes `value`. Returns MUSTER_ENOMEM on
 * failure. */
int doc_set(json_t *doc, const char *path, json_t *value);
int doc_set_text(json_t *doc, const char *path, const char *value);
int doc_set_int(json_t *doc, const char *path, int64_t value);

/* Returns the keys of an object, sorted, or NULL when out of memory. The caller frees the list; the
 * names belong to the object. */
const char **doc_keys(const json_t *object, size_t *ret_count);

/* Parses text into a tree, a new reference in *ret; refuses duplicate keys, depth over 128 and
 * trailing bytes. The error of MUSTER_EDATA says where the text is wrong; MUSTER_ENOMEM says
 * nothing about the text. */
int doc_parse(const char *text, size_t length, json_t **ret, struct muster_err *err);

/* The same, but if a key occurs twice, the last value counts, as in Go. */
int doc_parse_last(const char *text, size_t length, json_t **ret, struct muster_err *err);

/* Prints a tree, keys in their order, without white space; the caller frees. NULL only when out of
 * memory. */
char *doc_print(const json_t *doc);
/* Prints it over several lines, for people to read. */
char *doc_print_pretty(const json_t *doc);

/* Returns "a mapping", "a list", "text", "a number" and so on, for messages. */
const char *doc_type_name(const json_t *value);
