/* The budget of a stream of YAML documents, from which the copies of anchored values are paid: an
 * alias is short, but may stand for millions of values.
 *
 * Layer: base; pure. Used by load.c and tree.c only.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stddef.h>

/* A budget that the documents of one stream share, so that a limit holds for all of them
 * together. */
struct yaml_budget {
    size_t nodes;      /* number of nodes that are still allowed */
    size_t nodes_max;  /* the limit that `nodes` started from */
    size_t text_bytes; /* bytes that aliases may still repeat */
    int depth_max;
};

/* Takes one value from the budget. Returns MUSTER_ETOOBIG when nothing is left. */
int yaml_budget_spend(struct yaml_budget *budget, struct muster_err *err);

/* Returns MUSTER_ETOOBIG if there are too many levels. */
int yaml_budget_check_depth(const struct yaml_budget *budget, int levels, struct muster_err *err);

/* Returns the number of levels that a value adds below its place; 0 for a scalar. */
int yaml_height(const json_t *value);

/* Copies a value into a new reference; scalars are shared, because they are immutable. Returns
 * MUSTER_ETOOBIG or MUSTER_ENOMEM on failure. */
int yaml_copy(struct yaml_budget *budget, const json_t *value, json_t **ret,
              struct muster_err *err);
