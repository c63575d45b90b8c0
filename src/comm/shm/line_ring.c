/* Streams of lines. Layer: comm; see line_ring.h. */
#include "comm/shm/line_ring.h"

#include "comm/shm/line.h"

#include <assert.h>
#include <string.h>

_Static_assert(STREAM_BYTES % LINE_RING_BLOCK_BYTES == 0 &&
                   LINE_RING_BLOCK_BYTES % SEGMENT_LINE == 0,
               "blocks are whole lines, and the ring whole blocks");

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static uint64_t end_of_line(uint64_t at)
{
    return (at + SEGMENT_LINE - 1) / SEGMENT_LINE * SEGMENT_LINE;
}

/* Bytes from here on that lie in one piece. */
static size_t straight(uint64_t at)
{
    return STREAM_BYTES - (size_t)(at % STREAM_BYTES);
}

/* The compiler copies a size that it knows to be limited by `rep movs`, which starts slowly. */
static void copy(void *to, const void *from, size_t bytes)
{
    __asm__("" : "+r"(bytes));
    memcpy(to, from, bytes);
}

/* Whole lines that the writer knows to be free. */
static size_t known_room(const struct line_ring_end *end)
{
    assert(end->other <= end->at && end->at - end->other <= STREAM_BYTES);
    return (STREAM_BYTES - (size_t)(end->at - end->other)) / SEGMENT_LINE * SEGMENT_LINE;
}

static size_t room(struct stream_ring *ring, struct line_ring_end *end, size_t wanted)
{
    if (known_room(end) < wanted) {
        end->other = atomic_load_explicit(&ring->read, memory_order_acquire);
    }
    return known_room(end);
}

size_t line_ring_put(struct stream_ring *ring, struct line_ring_end *end, const void *data,
                     size_t bytes)
{
    assert(end->at % SEGMENT_LINE == 0);
    size_t wanted = smaller(smaller(bytes, LINE_RING_BLOCK_BYTES), straight(end->at));
    size_t taken = smaller(wanted, room(ring, end, wanted));
    copy(ring->data + end->at % STREAM_BYTES, data, taken);
    end->at += taken;
    return taken;
}

void line_ring_end_line(struct line_ring_end *end)
{
    end->at = end_of_line(end->at);
}

void line_ring_publish(struct stream_ring *ring, struct line_ring_end *end)
{
    line_ring_end_line(end);
    atomic_store_explicit(&ring->written, end->at, memory_order_release);
}

size_t line_ring_get(struct stream_ring *ring, struct line_ring_end *end, void *to, size_t bytes,
                     bool claims)
{
    if (end->other == end->at) {
        end->other = atomic_load_explicit(&ring->written, memory_order_acquire);
        assert(end->other >= end->at && end->other - end->at <= STREAM_BYTES);
    }
    size_t taken = smaller(smaller(bytes, LINE_RING_BLOCK_BYTES), straight(end->at));
    taken = smaller(taken, (size_t)(end->other - end->at));
    if (taken > 0) {
        bool whole = end->at % SEGMENT_LINE == 0;
        line_take(to, ring->data + end->at % STREAM_BYTES, taken, claims && whole);
        end->at += taken;
        atomic_store_explicit(&ring->read, end->at, memory_order_release);
    }
    return taken;
}

void line_ring_skip(struct stream_ring *ring, struct line_ring_end *end)
{
    uint64_t at = end_of_line(end->at);
    if (at != end->at) {
        assert(at <= end->other);
        end->at = at;
        atomic_store_explicit(&ring->read, at, memory_order_release);
    }
}
