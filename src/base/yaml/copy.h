/* What a stream of YAML documents may cost, and copies of what its anchors name, paid from that: an
 * alias is cheap to write and may stand for millions of values.
 *
 * Layer: base; pure. Used by load.c and tree.c only.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stddef.h>

/* Shared by the documents of one stream, so that a limit holds for all of them together. */
struct yaml_budget {
    size_t nodes;      /* still allowed */
    size_t nodes_max;  /* of how many */
    size_t text_bytes; /* that aliases may still repeat */
    int depth_max;
};

/* Takes one value from the budget. MUSTER_ETOOBIG when nothing is left. */
int yaml_budget_spend(struct yaml_budget *budget, struct muster_err *err);

/* MUSTER_ETOOBIG when so many levels are too many. */
int yaml_budget_check_depth(const struct yaml_budget *budget, int levels, struct muster_err *err);

/* Levels that a value adds below where it stands; 0 for a scalar. */
int yaml_height(const json_t *value);

/* New reference; scalars are shared, being immutable. MUSTER_ETOOBIG, MUSTER_ENOMEM. */
int yaml_copy(struct yaml_budget *budget, const json_t *value, json_t **ret,
              struct muster_err *err);
