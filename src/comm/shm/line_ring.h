/* Messages from one rank to another through shared memory, in lines: a header's line, then the data
 * from the next line on. Neither side ever writes into a line that the other may touch. Each side
 * has an end of its own, which remembers what it last saw of the other's place: looking costs a
 * line that has to come from the other core.
 *
 * The first part of a message is published by its header, with a stamp that no other message has:
 * the reader waits for the very line that it needs, and a short message needs no other flag. Before
 * the end of a message is published, the line after it is cleared if it looks like the header of
 * the next message.
 *
 * Layer: comm; pure. Memory: the caller's. Thread: one at each end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/shm/segment.h"

enum {
    /* Published at once, so that one side copies the next block in while the other copies this one
     * out. */
    LINE_RING_BLOCK_BYTES = 8 * 1024,
};

struct line_ring_end {
    size_t ring_bytes; /* bytes that both ends use of the ring's memory, from its start */
    uint64_t at;       /* bytes written, or read, since the beginning */
    uint64_t other;    /* the other end's position, as far as this end knows */
    uint64_t header;   /* writer only: where the header of the message is that was begun, … */
    bool begun;        /* … and is not published yet */
    bool ahead;        /* puts take their lines from the reader's core (line_fetch) a piece
                          before the copy reaches them, which pays if nobody reads the lines yet */
};

enum { LINE_RING_HEADER_BYTES = 16 };

/* Returns an end of an empty ring that uses ring_bytes of its memory: a power of two. */
struct line_ring_end line_ring_start(size_t ring_bytes);

/* Whether there is room now for a whole message of this many bytes. */
bool line_ring_fits(struct stream_ring *ring, struct line_ring_end *end, size_t bytes);
/* Begins, puts and publishes a whole message. Returns false if there is no room; then nothing was
 * done. */
bool line_ring_write(struct stream_ring *ring, struct line_ring_end *end, const void *header,
                     const void *data, size_t bytes);
/* Does the same by puts, which take the lines ahead if this end does so. */
bool line_ring_write_puts(struct stream_ring *ring, struct line_ring_end *end, const void *header,
                          const void *data, size_t bytes);
/* Begins a message with its header. Returns false if there is no room. */
bool line_ring_begin(struct stream_ring *ring, struct line_ring_end *end, const void *header);
/* Copies in as much as there is room for, at most a block, without publishing it. Returns the bytes
 * that it took: all of them, or whole lines. */
size_t line_ring_put(struct stream_ring *ring, struct line_ring_end *end, const void *data,
                     size_t bytes);
/* Publishes what was put. last: the message ends here. */
void line_ring_publish(struct stream_ring *ring, struct line_ring_end *end, bool last);

/* Returns how far the reader has come: messages that end before this position have been read. */
uint64_t line_ring_read_to(struct stream_ring *ring, struct line_ring_end *end);

/* Takes the lines of the next `bytes` bytes ahead of time (line_fetch), as far as they are known to
 * be free. */
void line_ring_fetch(const struct stream_ring *ring, const struct line_ring_end *end, size_t bytes);

/* Begins to read the lines behind the next header: the data of a small message, and the header
 * after it. All three then come from the writer's core at once, and not one after the other. */
void line_ring_expect(const struct stream_ring *ring, const struct line_ring_end *end);

/* Takes the header of the next message. Returns false if none has arrived. */
bool line_ring_take_header(struct stream_ring *ring, struct line_ring_end *end, void *ret_header);
/* Whether this many bytes of the message have arrived, as far as this end knows. */
static inline bool line_ring_has(const struct line_ring_end *end, size_t bytes)
{
    return end->other - end->at >= bytes;
}
/* Copies out as much of a message as has arrived, at most a block. claims: see line.h. */
size_t line_ring_get(struct stream_ring *ring, struct line_ring_end *end, void *to, size_t bytes,
                     bool claims);
/* Copies out and finishes a message that has arrived as a whole (line_ring_has). */
void line_ring_take(struct stream_ring *ring, struct line_ring_end *end, void *to, size_t bytes,
                    bool claims);
/* Called when all of the message was read: gives its lines back to the writer. */
void line_ring_finish(struct stream_ring *ring, struct line_ring_end *end);
