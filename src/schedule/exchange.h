/* Collectives as rounds of exchange: which bytes a rank sends to which peer in which round, and
 * what it does with the bytes that it receives.
 *
 * In each round every rank publishes at most `capacity` bytes (one payload for all peers, or one
 * for each peer), waits until all have published, and copies or reduces what is meant for it. A
 * rank may publish round j + 1 before it has consumed round j, but no later round. Transports move
 * the data; nothing here knows how.
 *
 * Layer: pure. Memory: the caller's struct; count arrays are borrowed. Thread: any, no shared
 * state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum schedule_pattern {
    SCHEDULE_BARRIER,
    SCHEDULE_ALL_REDUCE,       /* one shared blob, which all reduce: for small counts */
    SCHEDULE_ALL_REDUCE_SPLIT, /* reduce-scatter and all-gather, chunk by chunk */
    SCHEDULE_REDUCE,
    SCHEDULE_REDUCE_SCATTER,
    SCHEDULE_ALL_GATHER,
    SCHEDULE_BROADCAST,
    SCHEDULE_GATHER,
    SCHEDULE_SCATTER,
    SCHEDULE_ALL_TO_ALL,
};

struct schedule_exchange {
    enum schedule_pattern pattern;
    int rank;
    int size;
    int root;
    size_t unit;              /* bytes of an element */
    size_t count;             /* elements; of each block if there are blocks */
    const size_t *in_counts;  /* NULL: count to each peer */
    const size_t *out_counts; /* NULL: count from each peer */
    const size_t *in_starts;  /* NULL: blocks lie one after the other */
    const size_t *out_starts;
    size_t capacity;     /* bytes that a rank may publish in a round */
    size_t reduce_bytes; /* the most bytes of a piece that is reduced: its receiver has room for
                            one such piece of each peer; equal on all ranks; 0: only capacity
                            limits it */
    size_t rounds;       /* set by schedule_plan */
    size_t piece;        /* elements of the largest piece; set by schedule_plan */
};

/* Elements of the caller's buffers, in bytes. */
struct schedule_piece {
    size_t offset;
    size_t bytes;
};

enum schedule_action { SCHEDULE_NOTHING, SCHEDULE_COPY, SCHEDULE_REDUCE_PIECES };

struct schedule_round {
    enum schedule_action action; /* what this rank does with the data that it receives */
    bool shared;                 /* one blob for all receivers; false: a stripe for each */
    bool from_out;               /* published from the output: a result that was computed before */
};

/* Fills rounds and piece from the other fields. For an all-to-all with counts, `rounds` is this
 * rank's own view: the number of rounds to run is the largest over all ranks. capacity >= size *
 * unit. */
void schedule_plan(struct schedule_exchange *x);

struct schedule_round schedule_round(const struct schedule_exchange *x, size_t round);

/* Returns how many rounds this rank must have consumed before it publishes this one. */
size_t schedule_needs(const struct schedule_exchange *x, size_t round);

/* Returns what this rank sends to peer `to`, which may be this rank: elements of the input, or of
 * the output if from_out. */
struct schedule_piece schedule_send(const struct schedule_exchange *x, size_t round, int to);

/* Returns what this rank publishes in a shared round. */
struct schedule_piece schedule_shared(const struct schedule_exchange *x, size_t round);

/* Returns the place in the output of what this rank receives from peer `from`. */
struct schedule_piece schedule_receive(const struct schedule_exchange *x, size_t round, int from);

/* Returns the bytes between the stripes of a round that is not shared. */
size_t schedule_stripe(const struct schedule_exchange *x);
