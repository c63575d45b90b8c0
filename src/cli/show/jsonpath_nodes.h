/* The nodes of a template, between jsonpath_parse.c, which makes them, and jsonpath_eval.c, which
 * finds their values, and what that needs for slices and comparisons. */
#pragma once

#include "cli/show/jsonpath.h"

#include <stdbool.h>
#include <stdint.h>

enum jsonpath_kind {
    JSONPATH_LIST, /* one {…}, or the whole template: nodes one after the other */
    JSONPATH_TEXT,
    JSONPATH_FIELD,
    JSONPATH_WILDCARD,
    JSONPATH_RECURSIVE,
    JSONPATH_ARRAY,  /* [from:to:step] */
    JSONPATH_FILTER, /* [?(left op right)] */
    JSONPATH_UNION,  /* [a,b]: each child is a list */
    JSONPATH_VALUE,  /* a number or a truth value */
    JSONPATH_RANGE,
    JSONPATH_END,
};

/* One of the three numbers of a slice. */
struct jsonpath_bound {
    bool known;
    bool derived; /* for [from]: from + 1 */
    int64_t value;
};

struct jsonpath_node {
    enum jsonpath_kind kind;
    char *text; /* TEXT, FIELD; FILTER: the operator, or NULL: exists */
    json_t *value;
    struct jsonpath_bound bound[3];
    struct jsonpath_node *nodes; /* of LIST and UNION; FILTER: left and right */
    size_t count;
};

struct jsonpath {
    struct jsonpath_node root;
};

/* Is called for the values of each expression and for each text; returns 0, or a negative code to
 * stop. */
typedef int jsonpath_sink(void *context, json_t *const *values, size_t count);

int jsonpath_find(const struct jsonpath *path, const json_t *doc, jsonpath_sink *sink,
                  void *context, struct muster_err *err);

/* [from:to:step] of a list: from ≤ at < to, once it was checked. */
struct jsonpath_slice {
    int64_t from;
    int64_t to;
    int64_t step;
};
struct jsonpath_slice jsonpath_slice_of(const struct jsonpath_bound *bound, int64_t length);
/* MUSTER_EINVAL: the slice lies outside of the list, its start is behind its end, or its step is
 * not above 0. */
int jsonpath_slice_check(const struct jsonpath_slice *s, int64_t length, struct muster_err *err);

/* Evaluates "left SIGN right" of a filter. MUSTER_EINVAL: there is no such sign, or the two have no
 * order. */
int jsonpath_compare(const char *sign, const json_t *left, const json_t *right, bool *ret,
                     struct muster_err *err);

/* "an object", "a list" …, for errors. */
const char *jsonpath_kind_of(const json_t *value);
