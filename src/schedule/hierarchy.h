/* Collectives in a world of several hosts with several ranks each: first within each host (up),
 * then between the hosts (across), then within each host again (down). Only what must crosses the
 * wire, and every byte of it once for each host.
 *
 * Each host has as many leaders as the smallest host has ranks: its first ones. The leaders with
 * the same index in all hosts are a team, and take the same share of the vector: so all ranks of
 * even hosts work alike. A vector goes chunk by chunk: while chunk t goes up, chunk t - 1 goes
 * across and chunk t - 2 down.
 *
 * A stage is an exchange (exchange.h) within a team: of the ranks of a host, or of leaders.
 *
 * Layer: pure. Memory: the caller's structs. Thread: any, no shared state.
 */
#pragma once

#include "schedule/exchange.h"
#include "schedule/hosts.h"

struct schedule_hierarchy {
    const struct schedule_hosts *hosts;
    enum schedule_pattern pattern; /* not gather, scatter or all-to-all */
    int rank;
    int root;
    size_t unit;
    size_t count;
    const size_t *counts; /* elements of each block of an all-gather; NULL: count */
    size_t part;          /* the most elements of a leader's share of a chunk */
    size_t chunks;        /* set by schedule_hierarchy_plan */
};

/* Fills chunks. The schedule has schedule_hierarchy_slots(h) slots. */
void schedule_hierarchy_plan(struct schedule_hierarchy *h);

enum schedule_phase { SCHEDULE_UP, SCHEDULE_ACROSS, SCHEDULE_DOWN };

/* Returns the number of slots. The phase of a chunk runs in slot chunk + phase. */
size_t schedule_hierarchy_slots(const struct schedule_hierarchy *h);

enum schedule_buffer { SCHEDULE_IN, SCHEDULE_OUT, SCHEDULE_WORK };

/* The memory that a stage reads or writes. `work` has schedule_hierarchy_work() elements, in three
 * parts that the chunks use in turn. */
struct schedule_place {
    enum schedule_buffer buffer;
    size_t start; /* its first element */
};

struct schedule_stage {
    enum schedule_pattern pattern;
    int root;     /* its index in the team */
    size_t count; /* elements, unless counts is used */
    bool blocks;  /* counts and starts say what is sent to (or comes from) each rank of the team */
    size_t counts[MUSTER_MAX_RANKS];
    size_t starts[MUSTER_MAX_RANKS];
    size_t out_counts[MUSTER_MAX_RANKS]; /* only of an all-to-all, which has counts for both
                                            directions */
    size_t out_starts[MUSTER_MAX_RANKS];
    struct schedule_place from;
    struct schedule_place to;
    bool last_reduce; /* the result is complete: the average is divided in this stage */
};

size_t schedule_hierarchy_work(const struct schedule_hierarchy *h);

/* Returns the k-th stage of a phase of a chunk, as this rank sees it. False: there are no more
 * stages; all ranks of the team get the same answer. Only leaders have stages across. */
bool schedule_hierarchy_stage(const struct schedule_hierarchy *h, enum schedule_phase phase,
                              size_t chunk, int k, struct schedule_stage *ret);

/* Whether this rank has any stage between hosts. If it has, it has one in the first chunk. */
bool schedule_hierarchy_crosses(const struct schedule_hierarchy *h);
