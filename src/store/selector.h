/* Label and field selectors, as in ?labelSelector=a=b,c in (d,e),!f and
 * ?fieldSelector=metadata.name=x.
 *
 * Layer: services, pure all the same. Ownership: init by selector_parse_…, freed by selector_done.
 * Thread: any.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>

enum selector_operator {
    SELECTOR_IN,      /* "a=b", "a==b", "a in (b,c)" */
    SELECTOR_NOT_IN,  /* "a!=b", "a notin (b,c)"; also true if the key is missing */
    SELECTOR_EXISTS,  /* "a" */
    SELECTOR_MISSING, /* "!a" */
};

struct selector_requirement {
    enum selector_operator operator;
    char *key;
    char **values;
    size_t value_count;
};

/* All requirements must hold; a selector without requirements always matches. */
struct selector {
    struct selector_requirement *requirements;
    size_t count;
};

enum { SELECTOR_TEXT_BYTES_MAX = 8192, SELECTOR_REQUIREMENTS_MAX = 64, SELECTOR_VALUES_MAX = 256 };

/* Parses a label selector; NULL and "" are the empty selector. The error MUSTER_EINVAL says which
 * part cannot be read. */
int selector_parse_labels(const char *text, struct selector *ret, struct muster_err *err);

/* Parses = and == and !=; keys are dotted paths into the object. */
int selector_parse_fields(const char *text, struct selector *ret, struct muster_err *err);
void selector_done(struct selector *selector);

/* Matches metadata.labels of the object. */
bool selector_match_labels(const struct selector *selector, const json_t *object);

/* Matches the object's fields; a missing field counts as "". */
bool selector_match_fields(const struct selector *selector, const json_t *object);

/* Whether an object, printed as this JSON, may match by its fields. This rejects most of the
 * objects that do not match, at a small part of the cost of parsing them. */
bool selector_may_match_text(const struct selector *fields, const char *text);
