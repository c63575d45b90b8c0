/* Sets of fields of an object, as trees in the form of FieldsV1: {"f:data": {"f:k": {}}} is the
 * field data.k. A list is one field, whatever is in it.
 *
 * Layer: services, pure. Ownership: results are new references, NULL when out of memory; inputs
 * stay as they are. Depth is bounded by doc_parse.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* The fields that the object has, without those that only the server writes. */
json_t *fields_of(const json_t *object);
/* The fields of `object` that `other` lacks, or has with another value. */
json_t *fields_differing(const json_t *object, const json_t *other);
/* The same, where what `other` says beside is no difference, as of defaults in lists. */
json_t *fields_not_covered(const json_t *object, const json_t *other);

json_t *fields_in_both(const json_t *a, const json_t *b);
json_t *fields_without(const json_t *a, const json_t *b);
json_t *fields_joined(const json_t *a, const json_t *b);

/* The object without members that are null, which say nothing; those in lists stay. */
json_t *fields_without_nulls(const json_t *object);
/* Takes them out of the object, and what is left empty by that. */
void fields_remove(json_t *object, const json_t *fields);

/* Calls `each` with the path of each (".data.k"); stops where it returns less than 0. */
int fields_list(const json_t *fields, int (*each)(void *arg, const char *path), void *arg);
