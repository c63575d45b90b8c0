/* How this rank sums its part of a piece: along the fixed tree of all parts, chunk by chunk.
 *
 * 16-bit floats are widened to f32 on the way in and rounded once, at the root. Integers wrap, so
 * that their order does not matter; they take the same way.
 *
 * Layer: comm. Memory: of struct parts, which parts.c allocates. Thread: the caller's.
 */
#pragma once

#include "comm/state/state.h"
#include "schedule/tree.h"

enum {
    PARTS_CHUNK = 4096, /* elements that are summed at once: they stay in the cache */
    PARTS_DEPTH = 66,   /* of the tree, at most */
};

/* Values of one node for the elements of the chunk. */
struct node {
    struct tree_span span;
    const char *values;
};

struct parts {
    struct muster_comm *comm;
    enum muster_type type; /* of the user */
    enum muster_type wide; /* summed in */
    size_t wide_bytes;
    size_t total;
    struct tree_span spans[MUSTER_MAX_RANKS]; /* of all ranks */
    size_t num_nodes[MUSTER_MAX_RANKS];       /* that cover them */
    size_t all_nodes;
    bool direct;         /* this rank brings one part, which is sent as it is */
    bool gathers;        /* all ranks sum all elements */
    size_t piece;        /* elements */
    struct node *nodes;  /* of all ranks */
    struct node *leaves; /* of this rank */
    char *local;         /* this rank's nodes, for one rank's slice after the other … */
    char *gathered;      /* … and those of all, of this rank's slice */
    char *slice;         /* its sum, in the user's type */
    char *widened;       /* a chunk of this rank's parts */
    char *root;          /* a chunk of the sum */
    char *stack;         /* sums of left children, by depth */
};

/* The elements of a piece of that length that a rank sums. */
struct tree_span parts_slice_of(const struct parts *p, int rank, size_t length);
/* This rank's nodes of a piece, for one rank after the other; where all gather, for all at once. */
void parts_sum_own(struct parts *p, const char *parts, size_t start, size_t length, size_t stride);
/* The sum of this rank's slice of `height` elements, from the nodes that were gathered. */
void parts_sum_slice(struct parts *p, char *slice, size_t height, int divisor);
