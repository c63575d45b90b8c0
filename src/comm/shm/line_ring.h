/* A stream of bytes from one rank to another through shared memory, in lines: what is published
 * ends with a line, so that neither side ever writes into a line that the other may touch. Each
 * side has an end of its own, which remembers what it last saw of the other's place: looking costs
 * a line that has to come from the other core.
 *
 * Layer: comm; pure. Memory: the caller's. Thread: one at each end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/shm/segment.h"

enum {
    /* Published at once: one side copies the next block in while the other copies this one out. */
    LINE_RING_BLOCK_BYTES = 8 * 1024,
};

struct line_ring_end {
    uint64_t at;    /* bytes written, or read, since the beginning */
    uint64_t other; /* as far as the other end is known to be */
};

/* Copies in as much as there is room for, at most a block, without publishing it. The bytes taken:
 * all, or whole lines. */
size_t line_ring_put(struct stream_ring *ring, struct line_ring_end *end, const void *data,
                     size_t bytes);
/* Ends the line: what is put next begins another. */
void line_ring_end_line(struct line_ring_end *end);
/* Ends the line and publishes what was put. */
void line_ring_publish(struct stream_ring *ring, struct line_ring_end *end);

/* Copies out as much as has come, at most a block. claims: line.h. */
size_t line_ring_get(struct stream_ring *ring, struct line_ring_end *end, void *to, size_t bytes,
                     bool claims);
/* Passes over what the writer's end of the line left. */
void line_ring_skip(struct stream_ring *ring, struct line_ring_end *end);
