/* The nodes that do not answer, or are out of service, as a watch shows them; other nodes are not
 * kept. The driver's own clock measures how long a node has been silent, from the moment when this
 * was first seen: other machines' clocks may be wrong. A driver that is started again begins to
 * measure again.
 *
 * Layer: pure. Ownership: nodes_done frees all.
 */
#pragma once

#include "control/control.h"

struct nodes_item;

struct nodes {
    struct nodes_item *items;
    unsigned listing; /* the number of the latest listing */
};

/* A listing begins, and is complete: nodes that were not put in between answer again, or are
 * gone. */
void nodes_begin(struct nodes *nodes);
bool nodes_synced(struct nodes *nodes);
/* Puts a node in its present state. These functions return true if jobs must be looked at again. */
bool nodes_put(struct nodes *nodes, const json_t *node, int64_t now_ms);
bool nodes_remove(struct nodes *nodes, const json_t *node);
void nodes_done(struct nodes *nodes);

/* Returns the nodes for a view: the caller frees the array; its texts are borrowed until the next
 * change. NULL: there are none, or there is no memory, which does no harm. */
struct control_node *nodes_view(const struct nodes *nodes, int64_t now_ms, size_t *ret_count);
