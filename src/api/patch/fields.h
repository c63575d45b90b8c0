/* Sets of fields of an object, as trees in the form of FieldsV1: {"f:data": {"f:k": {}}} is the
 * field data.k. A list is one field, whatever is in it.
 *
 * Layer: services, pure. Ownership: results are new references, NULL when out of memory; inputs
 * stay as they are. Depth is bounded by doc_parse.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Returns the fields that the object has, without those that only the server writes. */
json_t *fields_of(const json_t *object);
/* Returns the fields of `object` that `other` lacks, or has with another value. */
json_t *fields_differing(const json_t *object, const json_t *other);
/* Returns the same, but members that only `other` has are not a difference, such as defaults in
 * lists. */
json_t *fields_not_covered(const json_t *object, const json_t *other);

json_t *fields_in_both(const json_t *a, const json_t *b);
json_t *fields_without(const json_t *a, const json_t *b);
json_t *fields_joined(const json_t *a, const json_t *b);

/* Returns the object without members that are null, because they say nothing; nulls in lists
 * stay. */
json_t *fields_without_nulls(const json_t *object);
/* Removes the fields from the object, and members that become empty by that. */
void fields_remove(json_t *object, const json_t *fields);

/* Calls `each` with the path of each field (".data.k"); stops when it returns less than 0. */
int fields_list(const json_t *fields, int (*each)(void *arg, const char *path), void *arg);
