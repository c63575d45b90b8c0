/* Sorted sets of ranges that do not overlap: what is still to be trained, and what a worker holds.
 *
 * The nodes of several sets come from one pool, so that moving a range from one set to another
 * needs no memory. Neighbours become one range. Each set is a treap: log n for each operation, a
 * million ranges in 32 MB.
 *
 * Layer: pure. Memory: shard_nodes_init/done; a set has none of its own, shard_set_clear gives its
 * nodes back. Thread: one at a time for all sets of a pool.
 */
#pragma once

#include "shard/range.h"

#include <stddef.h>

struct shard_node;

/* The pool. Nodes are allocated in chunks and kept until the end. */
struct shard_nodes {
    struct shard_node **chunks;
    uint32_t used; /* nodes that have been taken at least once */
    uint32_t free; /* the first of the nodes that were given back, linked by `left` */
    uint32_t free_count;
    uint32_t max;
};

struct shard_set {
    struct shard_nodes *nodes;
    uint32_t root;
    size_t ranges;
    uint64_t records;
};

/* Returns 0 or -MUSTER_ENOMEM. max: the number of ranges of all sets together. */
int shard_nodes_init(struct shard_nodes *nodes, uint32_t max);
void shard_nodes_done(struct shard_nodes *nodes);

/* Makes sure that the next `count` additions and removals succeed. MUSTER_ETOOBIG (max),
 * MUSTER_ENOMEM. */
int shard_nodes_reserve(struct shard_nodes *nodes, uint32_t count);
size_t shard_nodes_bytes(const struct shard_nodes *nodes);

void shard_set_init(struct shard_set *set, struct shard_nodes *nodes);
void shard_set_clear(struct shard_set *set);

/* Adds a range. MUSTER_EEXIST: some of it is in the set; MUSTER_ETOOBIG, MUSTER_ENOMEM. On error
 * the set is unchanged. */
int shard_set_add(struct shard_set *set, struct shard_range range);

/* Removes a range. MUSTER_ENOENT: not all of it is in the set; MUSTER_ETOOBIG and MUSTER_ENOMEM
 * only if a range is cut in two. On error the set is unchanged. */
int shard_set_remove(struct shard_set *set, struct shard_range range);

/* Returns how many positions, from the front of the range on, are in the set. */
uint32_t shard_set_prefix(const struct shard_set *set, struct shard_range range);
/* Whether all of the range is in the set, and whether some of it is. */
bool shard_set_contains(const struct shard_set *set, struct shard_range range);
bool shard_set_overlaps(const struct shard_set *set, struct shard_range range);

/* The first range, and the first that begins after `after`. Return false if there is none. */
bool shard_set_first(const struct shard_set *set, struct shard_range *ret);
bool shard_set_next(const struct shard_set *set, struct shard_range after, struct shard_range *ret);
