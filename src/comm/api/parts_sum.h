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
    PARTS_DEPTH = 66,   /* depth of the tree, at most */
};

/* The values of one node for the elements of the chunk. */
struct node {
    struct tree_span span;
    const char *values;
};

struct parts {
    struct muster_comm *comm;
    enum muster_type type; /* the user's type */
    enum muster_type wide; /* the type in which it is summed */
    size_t wide_bytes;
    size_t total;
    struct tree_span spans[MUSTER_MAX_RANKS]; /* the parts of each rank */
    size_t num_nodes[MUSTER_MAX_RANKS];       /* the nodes that cover them */
    size_t all_nodes;
    bool direct;         /* this rank brings one part, which is sent as it is */
    bool gathers;        /* all ranks sum all elements */
    size_t piece;        /* elements of a piece */
    struct node *nodes;  /* nodes of all ranks */
    struct node *leaves; /* leaves of this rank */
    char *local;         /* values of this rank's nodes, in order of the rank whose slice they
                            are in */
    char *gathered;      /* values of all ranks' nodes, for this rank's slice */
    char *slice;         /* the sum of this rank's slice, in the user's type */
    char *widened;       /* a chunk of this rank's parts */
    char *root;          /* a chunk of the sum */
    char *stack;         /* sums of left children, by depth */
};

/* Returns the elements that a rank sums, of a piece of this length. */
struct tree_span parts_slice_of(const struct parts *p, int rank, size_t length);
/* Sums this rank's nodes of a piece, for one rank's slice after the other; once for all ranks if
 * all gather. */
void parts_sum_own(struct parts *p, const char *parts, size_t start, size_t length, size_t stride);
/* Sums this rank's slice of `height` elements from the gathered nodes. */
void parts_sum_slice(struct parts *p, char *slice, size_t height, int divisor);
