/* Describes memory that the ranks of a host share, as each of them sees it; api/allocation.c makes
 * it. Layer: comm. */
#pragma once

#include "comm/shm/segment.h"

/* Memory of muster_comm_alloc: a part for each local rank. */
struct allocation {
    struct segment_extension parts; /* base is NULL when it was released */
    size_t size_bytes;              /* bytes of a part that the user sees */
};

enum { COMM_MAX_ALLOCATIONS = 1024, ALLOCATION_SKEW_LINES = 27 };

/* Returns the start of a rank's memory for the user. It has another offset in its page than that of
 * the neighbouring ranks: AMD's L1 cache finds a line by a hash of its virtual address, and if two
 * hashes and offsets are equal, as for half of all mappings, a loop over both takes four times as
 * long. */
static inline char *allocation_start(const struct allocation *allocation, int local)
{
    size_t skew = (size_t)local * ALLOCATION_SKEW_LINES * SEGMENT_LINE % SEGMENT_PAGE;
    return allocation->parts.base + (size_t)local * allocation->parts.part_bytes + skew;
}
