/* The choice of algorithms. The limits are measured: bench/collectives, reference in docs/c-api.md.
 * Layer: pure. */
#include "schedule/choose.h"

#include <assert.h>

enum {
    DIRECT_FROM_BYTES = 1024,      /* below, an exchange of places costs more than it saves */
    FOLD_ALL_TO_BYTES = 16 * 1024, /* half of the first cache */
    SMALL_BLOCK_BYTES = 16 * 1024,
    LARGE_BLOCK_BYTES = 64 * 1024,
    LARGE_BLOCK_FROM_BYTES = 256 * 1024,
};

struct schedule_choice schedule_choose(const struct schedule_world *world, size_t bytes)
{
    if (world->one_host && world->has_shared_memory && bytes >= DIRECT_FROM_BYTES) {
        return (struct schedule_choice){SCHEDULE_DIRECT, 0};
    }
    if (world->size == 1 || bytes <= FOLD_ALL_TO_BYTES) {
        return (struct schedule_choice){SCHEDULE_FOLD_ALL, 0};
    }
    if (!world->one_host) {
        return (struct schedule_choice){SCHEDULE_SPLIT, 0};
    }
    return (struct schedule_choice){
        SCHEDULE_RING, bytes < LARGE_BLOCK_FROM_BYTES ? SMALL_BLOCK_BYTES : LARGE_BLOCK_BYTES};
}

const char *schedule_algorithm_name(enum schedule_algorithm algorithm)
{
    switch (algorithm) {
    case SCHEDULE_FOLD_ALL: return "every rank folds all";
    case SCHEDULE_RING: return "ring of blocks, answered in place";
    case SCHEDULE_DIRECT: return "direct in shared memory";
    case SCHEDULE_SPLIT: return "reduce-scatter and all-gather";
    }
    assert(!"unreachable");
    return "";
}
