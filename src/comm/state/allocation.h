/* Describes memory that the ranks of a host share, as each of them sees it; api/allocation.c makes
 * it. Layer: comm. */
#pragma once

#include "comm/shm/segment.h"

/* Memory of muster_comm_alloc: a part for each local rank. */
struct allocation {
    struct segment_extension parts; /* base NULL: released */
    size_t size_bytes;              /* of what the user sees of a part */
};

enum { COMM_MAX_ALLOCATIONS = 1024, ALLOCATION_SKEW_LINES = 27 };

/* The start of the user's memory of a rank: at another offset in its page than that of the ranks
 * beside it. AMD's L1 cache finds a line by a hash of its virtual address, and where two hashes and
 * offsets are equal, as they are for half of all mappings, a loop over both takes four times as
 * long. */
static inline char *allocation_start(const struct allocation *allocation, int local)
{
    size_t skew = (size_t)local * ALLOCATION_SKEW_LINES * SEGMENT_LINE % SEGMENT_PAGE;
    return allocation->parts.base + (size_t)local * allocation->parts.part_bytes + skew;
}
