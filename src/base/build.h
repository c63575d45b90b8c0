/* Documents made piece by piece: the first failure sticks, so that a writer may set many fields and
 * look once.
 *
 * Layer: base; pure. Ownership: values are taken, also on failure. Not thread-safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct build {
    bool failed; /* out of memory; `= {0}` is a valid start */
};

/* Returns `value`, the result of a json_…() call, and notes a NULL as a failure. */
json_t *build_value(struct build *b, json_t *value);

void build_set(struct build *b, json_t *object, const char *key, json_t *value);
/* Sets nothing when text is NULL. */
void build_text(struct build *b, json_t *object, const char *key, const char *text);
void build_int(struct build *b, json_t *object, const char *key, json_int_t value);
void build_add(struct build *b, json_t *array, json_t *value);

/* Returns the object (array) at the key, borrowed; creates it if it is missing or of another type.
 * Returns NULL after a failure, which every function here accepts as an argument. */
json_t *build_object_at(struct build *b, json_t *object, const char *key);
json_t *build_array_at(struct build *b, json_t *object, const char *key);

/* Returns the finished document, or NULL (and releases `doc`) when a step failed. */
json_t *build_end(const struct build *b, json_t *doc);
