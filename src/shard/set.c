/* See set.h. Node 0 stands for none. */
#include "shard/set.h"

#include <muster/err.h>

#include <assert.h>
#include <stdlib.h>

enum { CHUNK_BITS = 12, CHUNK = 1 << CHUNK_BITS };

struct shard_node {
    struct shard_range range;
    uint32_t left;
    uint32_t right;
};

static struct shard_node *node_at(const struct shard_nodes *nodes, uint32_t node)
{
    return &nodes->chunks[node >> CHUNK_BITS][node & (CHUNK - 1)];
}

/* ---- The pool ---- */

static uint32_t chunk_count(uint32_t nodes)
{
    return (nodes + CHUNK - 1) >> CHUNK_BITS;
}

int shard_nodes_init(struct shard_nodes *nodes, uint32_t max)
{
    assert(max > 0 && max < UINT32_MAX - CHUNK);
    struct shard_node **chunks = calloc(chunk_count(max + 1), sizeof *chunks);
    if (!chunks) {
        return MUSTER_ENOMEM;
    }
    *nodes = (struct shard_nodes){.chunks = chunks, .max = max};
    return 0;
}

void shard_nodes_done(struct shard_nodes *nodes)
{
    for (uint32_t i = 0; nodes->chunks && i < chunk_count(nodes->max + 1); i++) {
        free(nodes->chunks[i]);
    }
    free(nodes->chunks);
    *nodes = (struct shard_nodes){0};
}

int shard_nodes_reserve(struct shard_nodes *nodes, uint32_t count)
{
    if (count <= nodes->free_count) {
        return 0;
    }
    uint32_t fresh = count - nodes->free_count;
    if (fresh > nodes->max - nodes->used) {
        return MUSTER_ETOOBIG;
    }
    for (uint32_t i = (nodes->used + 1) >> CHUNK_BITS; i < chunk_count(nodes->used + fresh + 1);
         i++) {
        if (!nodes->chunks[i] && !(nodes->chunks[i] = calloc(CHUNK, sizeof **nodes->chunks))) {
            return MUSTER_ENOMEM;
        }
    }
    return 0;
}

size_t shard_nodes_bytes(const struct shard_nodes *nodes)
{
    size_t bytes = chunk_count(nodes->max + 1) * sizeof *nodes->chunks;
    for (uint32_t i = 0; i < chunk_count(nodes->max + 1); i++) {
        bytes += nodes->chunks[i] ? CHUNK * sizeof **nodes->chunks : 0;
    }
    return bytes;
}

/* Takes a node; one must be reserved. */
static uint32_t take_node(struct shard_nodes *nodes, struct shard_range range)
{
    uint32_t node = nodes->free;
    if (node) {
        nodes->free = node_at(nodes, node)->left;
        nodes->free_count--;
    } else {
        node = ++nodes->used;
    }
    *node_at(nodes, node) = (struct shard_node){.range = range};
    return node;
}

static void give_node(struct shard_nodes *nodes, uint32_t node)
{
    node_at(nodes, node)->left = nodes->free;
    nodes->free = node;
    nodes->free_count++;
}

/* ---- The treap: sorted from left to right, priorities sink from the root ---- */

/* A scrambled number, so that priorities do not depend on the order in which nodes were taken. */
static uint32_t priority(uint32_t node)
{
    node = (node ^ node >> 16) * UINT32_C(0x7feb352d);
    node = (node ^ node >> 15) * UINT32_C(0x846ca68b);
    return node ^ node >> 16;
}

static uint32_t merge(struct shard_nodes *nodes, uint32_t left, uint32_t right)
{
    if (!left || !right) {
        return left ? left : right;
    }
    if (priority(left) > priority(right)) {
        struct shard_node *top = node_at(nodes, left);
        top->right = merge(nodes, top->right, right);
        return left;
    }
    struct shard_node *top = node_at(nodes, right);
    top->left = merge(nodes, left, top->left);
    return right;
}

static void split(struct shard_nodes *nodes, uint32_t root, struct shard_range at,
                  uint32_t *ret_left, uint32_t *ret_right)
{
    if (!root) {
        *ret_left = *ret_right = 0;
        return;
    }
    struct shard_node *top = node_at(nodes, root);
    if (shard_range_compare(top->range, at) < 0) {
        split(nodes, top->right, at, &top->right, ret_right);
        *ret_left = root;
    } else {
        split(nodes, top->left, at, ret_left, &top->left);
        *ret_right = root;
    }
}

static void insert(struct shard_set *set, struct shard_range range)
{
    struct shard_nodes *nodes = set->nodes;
    uint32_t node = take_node(nodes, range);
    uint32_t *link = &set->root;
    while (*link && priority(*link) > priority(node)) {
        struct shard_node *at = node_at(nodes, *link);
        link = shard_range_compare(range, at->range) < 0 ? &at->left : &at->right;
    }
    struct shard_node *new = node_at(nodes, node);
    split(nodes, *link, range, &new->left, &new->right);
    *link = node;
    set->ranges++;
}

static void erase(struct shard_set *set, struct shard_range range)
{
    struct shard_nodes *nodes = set->nodes;
    uint32_t *link = &set->root;
    for (int order; (order = shard_range_compare(range, node_at(nodes, *link)->range)) != 0;) {
        struct shard_node *at = node_at(nodes, *link);
        link = order < 0 ? &at->left : &at->right;
        assert(*link);
    }
    uint32_t node = *link;
    *link = merge(nodes, node_at(nodes, node)->left, node_at(nodes, node)->right);
    give_node(nodes, node);
    set->ranges--;
}

/* Finds the last node that begins at or before the range, and the first that begins after it; NULL
 * if there is none. */
static void neighbours(const struct shard_set *set, struct shard_range range,
                       struct shard_node **ret_before, struct shard_node **ret_after)
{
    *ret_before = *ret_after = NULL;
    for (uint32_t node = set->root; node;) {
        struct shard_node *at = node_at(set->nodes, node);
        if (shard_range_compare(at->range, range) <= 0) {
            *ret_before = at;
            node = at->right;
        } else {
            *ret_after = at;
            node = at->left;
        }
    }
}

/* ---- Sets ---- */

void shard_set_init(struct shard_set *set, struct shard_nodes *nodes)
{
    *set = (struct shard_set){.nodes = nodes};
}

static void give_all(struct shard_nodes *nodes, uint32_t node)
{
    if (node) {
        give_all(nodes, node_at(nodes, node)->left);
        give_all(nodes, node_at(nodes, node)->right);
        give_node(nodes, node);
    }
}

void shard_set_clear(struct shard_set *set)
{
    give_all(set->nodes, set->root);
    shard_set_init(set, set->nodes);
}

static bool joins(const struct shard_node *left, struct shard_range right)
{
    return left && shard_range_same_epoch(left->range, right) &&
           shard_range_end(left->range) == right.first &&
           left->range.count <= UINT32_MAX - right.count;
}

int shard_set_add(struct shard_set *set, struct shard_range range)
{
    assert(shard_range_valid(range));
    struct shard_node *before, *after;
    neighbours(set, range, &before, &after);
    if ((before && shard_range_overlaps(before->range, range)) ||
        (after && shard_range_overlaps(after->range, range))) {
        return MUSTER_EEXIST;
    }
    struct shard_node self = {.range = range};
    if (joins(before, range)) {
        before->range.count += range.count;
        if (after && joins(before, after->range)) {
            struct shard_range swallowed = after->range;
            erase(set, swallowed);
            before->range.count += swallowed.count;
        }
    } else if (after && joins(&self, after->range)) {
        after->range.first = range.first;
        after->range.count += range.count;
    } else {
        int r = shard_nodes_reserve(set->nodes, 1);
        if (r < 0) {
            return r;
        }
        insert(set, range);
    }
    set->records += range.count;
    return 0;
}

/* A range that 32 bits cannot count is in several nodes. */
uint32_t shard_set_prefix(const struct shard_set *set, struct shard_range range)
{
    uint64_t at = range.first, end = shard_range_end(range);
    while (at < end) {
        const struct shard_range front = {range.dataset, range.epoch, at, 1};
        struct shard_node *node, *after;
        neighbours(set, front, &node, &after);
        if (!node || !shard_range_covers(node->range, front)) {
            break;
        }
        at = shard_range_end(node->range);
    }
    return (uint32_t)((at < end ? at : end) - range.first);
}

bool shard_set_contains(const struct shard_set *set, struct shard_range range)
{
    return shard_set_prefix(set, range) == range.count;
}

bool shard_set_overlaps(const struct shard_set *set, struct shard_range range)
{
    struct shard_node *before, *after;
    neighbours(set, range, &before, &after);
    return (before && shard_range_overlaps(before->range, range)) ||
           (after && shard_range_overlaps(after->range, range));
}

/* Removes `range`, which must be inside the node. */
static void cut_out(struct shard_set *set, struct shard_node *at, struct shard_range range)
{
    uint64_t end = shard_range_end(at->range);
    struct shard_range rest = range;
    rest.first = shard_range_end(range);
    rest.count = (uint32_t)(end - rest.first);
    set->records -= range.count;
    if (at->range.first < range.first) {
        at->range.count = (uint32_t)(range.first - at->range.first);
        if (rest.count > 0) {
            insert(set, rest);
        }
    } else if (rest.count > 0) {
        at->range = rest; /* no other range begins between the old and the new beginning */
    } else {
        erase(set, at->range);
    }
}

int shard_set_remove(struct shard_set *set, struct shard_range range)
{
    assert(shard_range_valid(range));
    if (!shard_set_contains(set, range)) {
        return MUSTER_ENOENT;
    }
    struct shard_node *at, *after;
    neighbours(set, range, &at, &after);
    bool in_two =
        at->range.first < range.first && shard_range_end(at->range) > shard_range_end(range);
    int r = in_two ? shard_nodes_reserve(set->nodes, 1) : 0;
    if (r < 0) {
        return r;
    }
    while (shard_range_end(at->range) < shard_range_end(range)) {
        uint64_t count = shard_range_end(at->range) - range.first;
        cut_out(set, at, shard_range_take(&range, (uint32_t)count));
        neighbours(set, range, &at, &after);
    }
    cut_out(set, at, range);
    return 0;
}

bool shard_set_first(const struct shard_set *set, struct shard_range *ret)
{
    uint32_t node = set->root;
    for (uint32_t left; node && (left = node_at(set->nodes, node)->left) != 0;) {
        node = left;
    }
    if (node) {
        *ret = node_at(set->nodes, node)->range;
    }
    return node != 0;
}

bool shard_set_next(const struct shard_set *set, struct shard_range after, struct shard_range *ret)
{
    struct shard_node *before, *next;
    neighbours(set, after, &before, &next);
    if (next) {
        *ret = next->range;
    }
    return next != NULL;
}
