/* The nodes that do not answer, or are out of service, as a watch shows them; of other nodes
 * nothing is kept. The driver's own clock measures how long a node has been silent, from when it
 * was first seen so: other machines' clocks may be wrong. A driver that starts again begins to
 * measure again.
 *
 * Layer: pure. Ownership: nodes_done frees all.
 */
#pragma once

#include "control/control.h"

struct nodes_item;

struct nodes {
    struct nodes_item *items;
    unsigned listing; /* its number */
};

/* A listing begins, and is complete: what was not put in between answers, or is gone. */
void nodes_begin(struct nodes *nodes);
bool nodes_synced(struct nodes *nodes);
/* A node as it is now. All of these are true when something is to be looked at again. */
bool nodes_put(struct nodes *nodes, const json_t *node, int64_t now_ms);
bool nodes_remove(struct nodes *nodes, const json_t *node);
void nodes_done(struct nodes *nodes);

/* The nodes for a view: free the array; its texts are borrowed until the next change. NULL: there
 * are none, or there is no memory, by which nothing is lost. */
struct control_node *nodes_view(const struct nodes *nodes, int64_t now_ms, size_t *ret_count);
