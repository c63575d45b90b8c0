/* Chooses algorithms. The limits are measured (bench/collectives/run), and `muster perf tune`
 * prints them. Limits that differ by processor are in tuning.c. Layer: pure. */
#include "schedule/choose.h"

#include <assert.h>

enum {
    ZERO_COPY_FROM_BYTES = 2048,       /* below this size a second round costs more than it saves */
    GATHER_REDUCE_TO_BYTES = 8 * 1024, /* above this size it costs less to reduce only a part,
                                          although this needs a second exchange */
    PAIRWISE_FROM_BYTES = 2048,        /* the same for two ranks */
    GATHER_REDUCE_TO_BYTES_FAR = 16 * 1024, /* the same between hosts */
};

/* Ranks that share a processor pay a context switch for each block. */
static size_t block_bytes(const struct schedule_world *world, size_t bytes)
{
    if (world->oversubscribed) {
        return SCHEDULE_MAX_BLOCK_BYTES;
    }
    int i = 0;
    while (bytes >= world->tuning->blocks[i].below_bytes) {
        i++;
        assert(i < SCHEDULE_BLOCK_SIZES);
    }
    return world->tuning->blocks[i].block_bytes;
}

struct schedule_choice schedule_choose(const struct schedule_world *world, size_t bytes)
{
    if (world->one_host && bytes >= ZERO_COPY_FROM_BYTES && world->has_shared_memory) {
        return (struct schedule_choice){SCHEDULE_ZERO_COPY, 0};
    }
    /* In a pairwise exchange both ranks reduce all: that does not pay if they share a processor. */
    bool pairwise = world->one_host && world->size == 2 && !world->oversubscribed;
    if (pairwise && bytes >= PAIRWISE_FROM_BYTES) {
        return (struct schedule_choice){SCHEDULE_PAIRWISE, block_bytes(world, bytes)};
    }
    if (world->size == 1 ||
        bytes <= (world->one_host ? GATHER_REDUCE_TO_BYTES : GATHER_REDUCE_TO_BYTES_FAR)) {
        return (struct schedule_choice){SCHEDULE_GATHER_REDUCE, 0};
    }
    if (!world->one_host) {
        return (struct schedule_choice){SCHEDULE_SCATTER_GATHER, 0};
    }
    return (struct schedule_choice){SCHEDULE_OWNER_REDUCE, block_bytes(world, bytes)};
}

const char *schedule_algorithm_name(enum schedule_algorithm algorithm)
{
    switch (algorithm) {
    case SCHEDULE_GATHER_REDUCE: return "gather-reduce";
    case SCHEDULE_PAIRWISE: return "pairwise exchange";
    case SCHEDULE_OWNER_REDUCE: return "owner-reduce";
    case SCHEDULE_ZERO_COPY: return "zero-copy";
    case SCHEDULE_SCATTER_GATHER: return "scatter-gather";
    }
    assert(!"unreachable");
    return "";
}
