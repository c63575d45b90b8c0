/* One YAML document as it is built, event by event.
 *
 * Layer: base; pure. Used by load.c only. Ownership: init/done.
 */
#pragma once

#include "base/yaml/copy.h"
#include "base/yaml/yaml.h"

struct yaml_frame;

struct yaml_tree {
    json_t *root; /* NULL while nothing was added */
    struct yaml_places *places;
    struct yaml_budget *budget;
    struct yaml_frame *frames;
    int depth;
    int duplicates;    /* number of keys that the mapping already had */
    json_t *anchors;   /* name to value */
    json_t *discarded; /* values without a place: of a duplicate key, of a key that is not text */
    const char *fault; /* of the last call, valid until the next one; NULL if nothing was wrong */
    const char *hint;
    int fault_place;            /* yaml_places id */
    struct yaml_place fault_at; /* line 0: use the place of the call's event */
    char text[160];             /* text of the fault */
};

enum yaml_quoting { YAML_PLAIN, YAML_QUOTED };

struct yaml_scalar {
    const char *text; /* not terminated */
    size_t length;
    enum yaml_quoting quoting;
    const char *tag; /* "tag:yaml.org,2002:int", or NULL */
};

/* All return 0, MUSTER_ETOOBIG over the budget (err is set), or MUSTER_ENOMEM. A fault in the
 * document itself is left in tree->fault, and the value is left out. `anchor` may be NULL; a place
 * with line 0 is unknown. */
int yaml_tree_init(struct yaml_tree *tree, struct yaml_budget *budget);
void yaml_tree_done(struct yaml_tree *tree);
int yaml_tree_open(struct yaml_tree *tree, bool mapping, const char *anchor,
                   struct yaml_place place, struct muster_err *err);
int yaml_tree_close(struct yaml_tree *tree, struct muster_err *err);
int yaml_tree_scalar(struct yaml_tree *tree, const struct yaml_scalar *scalar, const char *anchor,
                     struct yaml_place place, struct muster_err *err);
int yaml_tree_alias(struct yaml_tree *tree, const char *name, struct yaml_place place,
                    struct muster_err *err);
