/* Which algorithm an all-reduce takes. All choices give the same bits; they differ in speed only.
 *
 * Layer: pure. Only what all ranks know alike may enter.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "schedule/tuning.h"

enum schedule_algorithm {
    SCHEDULE_GATHER_REDUCE, /* every rank publishes all of its input, and every rank reduces all */
    SCHEDULE_PAIRWISE,      /* two ranks: they exchange chunks through shared slots, and both
                               reduce all */
    SCHEDULE_OWNER_REDUCE,  /* blocks go through shared slots, and the owner answers in place */
    SCHEDULE_ZERO_COPY, /* each rank reduces a share, in memory of muster_comm_alloc or staged */
    SCHEDULE_SCATTER_GATHER, /* reduce-scatter and all-gather, chunk by chunk */
};

/* Private memory up to this size can be staged as a whole. */
enum { SCHEDULE_STAGED_BYTES = 16 * 1024 };

struct schedule_world {
    int size;
    bool one_host;
    bool has_shared_memory; /* the memory is from muster_comm_alloc */
    bool oversubscribed;    /* a host has more ranks than processors */
    const struct schedule_tuning *tuning;
};

struct schedule_choice {
    enum schedule_algorithm algorithm;
    size_t block_bytes; /* bytes of a block of a chunk, for pairwise exchange and owner-reduce */
};

struct schedule_choice schedule_choose(const struct schedule_world *world, size_t bytes);
const char *schedule_algorithm_name(enum schedule_algorithm algorithm);
