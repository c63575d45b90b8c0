/* How a vector is divided: into chunks that fit a slot, and each chunk among the ranks.
 *
 * Layer: pure. Memory: none. Thread: any.
 */
#pragma once

#include <stddef.h>

enum { PARTITION_GRAIN = 16 }; /* in elements: parts start on a cache line for 4-byte types */

struct partition {
    size_t first; /* the first element */
    size_t count;
};

/* Returns the number of chunks, if each rank's part of a chunk has at most `part` elements. */
size_t partition_chunks(size_t count, int size, size_t part);

/* Returns this rank's part of the chunk. Parts of one chunk are equal, except the last ones, which
 * may be shorter or empty. */
struct partition partition_part(size_t count, int size, size_t part, size_t chunk, int rank);
