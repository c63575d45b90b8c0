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

/* What json_…() made, noting a NULL. */
json_t *build_value(struct build *b, json_t *value);

void build_set(struct build *b, json_t *object, const char *key, json_t *value);
/* Nothing is set when text is NULL. */
void build_text(struct build *b, json_t *object, const char *key, const char *text);
void build_int(struct build *b, json_t *object, const char *key, json_int_t value);
void build_add(struct build *b, json_t *array, json_t *value);

/* The object (array) at the key, made when it is missing or of another type; borrowed. NULL after a
 * failure, which every function here takes. */
json_t *build_object_at(struct build *b, json_t *object, const char *key);
json_t *build_array_at(struct build *b, json_t *object, const char *key);

/* The finished document, or NULL (and `doc` is released) when a piece failed. */
json_t *build_end(const struct build *b, json_t *doc);
