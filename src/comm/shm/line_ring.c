/* Messages in lines. Layer: comm; see line_ring.h. */
#include "comm/shm/line_ring.h"

#include "comm/shm/line.h"
#include "core/size.h"

#include <assert.h>
#include <string.h>

_Static_assert(LINE_RING_BLOCK_BYTES % SEGMENT_LINE == 0, "blocks are whole lines");

/* Smaller messages are not claimed, because the sender of an answer would wait for the claimed
 * lines. */
enum { CLAIM_ABOVE_BYTES = 2 * SEGMENT_LINE };
enum { EXPECTED_LINES = 2 };
/* Lines are taken this many bytes ahead of the copy. */
enum { AHEAD_BYTES = 1024 };

/* The line that holds a header. */
struct header_line {
    _Atomic uint64_t stamp; /* the place of this line in the stream, from 1 */
    uint64_t published;     /* bytes of data that are published with it */
    char header[LINE_RING_HEADER_BYTES];
};

static uint64_t end_of_line(uint64_t at)
{
    return (at + SEGMENT_LINE - 1) / SEGMENT_LINE * SEGMENT_LINE;
}

/* Returns the offset in the ring of this position of the stream. */
static size_t place_of(const struct line_ring_end *end, uint64_t at)
{
    return (size_t)at & (end->ring_bytes - 1);
}

static struct header_line *line_at(struct stream_ring *ring, const struct line_ring_end *end,
                                   uint64_t at)
{
    return (struct header_line *)(void *)(ring->data + place_of(end, at));
}

/* Returns the bytes from here on that lie in one piece. */
static size_t straight(const struct line_ring_end *end)
{
    return end->ring_bytes - place_of(end, end->at);
}

/* Hides the limit of `bytes`, because the compiler would copy with `rep movs`, which starts slowly.
 */
static void copy(void *to, const void *from, size_t bytes)
{
    __asm__("" : "+r"(bytes));
    memcpy(to, from, bytes);
}

/* Takes lines ahead of the copy: the stores of a plain copy wait for their lines, which are in the
 * reader's cache, a few at a time. */
static __attribute__((noinline)) void copy_ahead(char *to, const char *from, size_t bytes)
{
    size_t done = 0;
    for (; bytes - done > AHEAD_BYTES; done += AHEAD_BYTES) {
        size_t end = size_min(bytes, done + 2 * AHEAD_BYTES);
        for (size_t at = done + AHEAD_BYTES; at < end; at += SEGMENT_LINE) {
            line_fetch(to + at);
        }
        copy(to + done, from + done, AHEAD_BYTES);
    }
    copy(to + done, from + done, bytes - done);
}

static void copy_in(struct stream_ring *ring, const struct line_ring_end *end, const void *data,
                    size_t bytes)
{
    char *to = ring->data + place_of(end, end->at);
    if (end->ahead && bytes > AHEAD_BYTES) {
        copy_ahead(to, data, bytes);
    } else {
        copy(to, data, bytes);
    }
}

/* Returns the bytes of whole lines that the writer knows to be free, except the line that is
 * cleared after a message. */
static size_t plan_room(const struct line_ring_end *end)
{
    size_t used = (size_t)(end->at - end->other);
    assert(end->other <= end->at && used <= end->ring_bytes - SEGMENT_LINE);
    return (end->ring_bytes - SEGMENT_LINE - used) / SEGMENT_LINE * SEGMENT_LINE;
}

static size_t room(struct stream_ring *ring, struct line_ring_end *end, size_t wanted)
{
    if (plan_room(end) < wanted) {
        end->other = atomic_load_explicit(&ring->read, memory_order_acquire);
    }
    return plan_room(end);
}

/* Old data of the last lap may look like the stamp of the next message. This almost never happens,
 * so a look first costs less than taking the line from the reader's core. */
static void clear_stamp(struct header_line *line, uint64_t at)
{
    if (atomic_load_explicit(&line->stamp, memory_order_relaxed) == at + 1) {
        atomic_store_explicit(&line->stamp, 0, memory_order_relaxed);
    }
}

struct line_ring_end line_ring_start(size_t ring_bytes)
{
    assert(ring_bytes <= STREAM_BYTES && ring_bytes >= 2 * LINE_RING_BLOCK_BYTES);
    assert((ring_bytes & (ring_bytes - 1)) == 0);
    return (struct line_ring_end){.ring_bytes = ring_bytes};
}

bool line_ring_fits(struct stream_ring *ring, struct line_ring_end *end, size_t bytes)
{
    size_t wanted = SEGMENT_LINE + (size_t)end_of_line(bytes);
    assert(end->at % SEGMENT_LINE == 0 && bytes < end->ring_bytes);
    return room(ring, end, wanted) >= wanted;
}

bool line_ring_begin(struct stream_ring *ring, struct line_ring_end *end, const void *header)
{
    assert(end->at % SEGMENT_LINE == 0 && !end->begun);
    if (room(ring, end, SEGMENT_LINE) == 0) {
        return false;
    }
    memcpy(line_at(ring, end, end->at)->header, header, LINE_RING_HEADER_BYTES);
    end->begun = true;
    end->header = end->at;
    end->at += SEGMENT_LINE;
    return true;
}

size_t line_ring_put(struct stream_ring *ring, struct line_ring_end *end, const void *data,
                     size_t bytes)
{
    assert(end->at % SEGMENT_LINE == 0);
    size_t wanted = size_min(size_min(bytes, LINE_RING_BLOCK_BYTES), straight(end));
    size_t taken = size_min(wanted, room(ring, end, wanted));
    copy_in(ring, end, data, taken);
    end->at += taken;
    return taken;
}

bool line_ring_write(struct stream_ring *ring, struct line_ring_end *end, const void *header,
                     const void *data, size_t bytes)
{
    size_t wanted = SEGMENT_LINE + (size_t)end_of_line(bytes);
    assert(end->at % SEGMENT_LINE == 0 && !end->begun && bytes < end->ring_bytes);
    if (room(ring, end, wanted) < wanted) {
        return false;
    }
    struct header_line *line = line_at(ring, end, end->at);
    uint64_t stamp = end->at + 1;
    memcpy(line->header, header, LINE_RING_HEADER_BYTES);
    line->published = wanted - SEGMENT_LINE;
    end->at += SEGMENT_LINE;
    size_t first = size_min(bytes, straight(end));
    if (first > 0) { /* otherwise data may be NULL */
        copy(ring->data + place_of(end, end->at), data, first);
    }
    if (first < bytes) {
        copy(ring->data, (const char *)data + first, bytes - first);
    }
    end->at += wanted - SEGMENT_LINE;
    clear_stamp(line_at(ring, end, end->at), end->at);
    atomic_store_explicit(&line->stamp, stamp, memory_order_release);
    return true;
}

bool line_ring_write_puts(struct stream_ring *ring, struct line_ring_end *end, const void *header,
                          const void *data, size_t bytes)
{
    if (!line_ring_fits(ring, end, bytes)) {
        return false;
    }
    bool begun = line_ring_begin(ring, end, header);
    assert(begun && "it fits");
    for (size_t done = 0; done < bytes;) {
        done += line_ring_put(ring, end, (const char *)data + done, bytes - done);
    }
    line_ring_publish(ring, end, true);
    return true;
}

void line_ring_publish(struct stream_ring *ring, struct line_ring_end *end, bool last)
{
    end->at = end_of_line(end->at);
    if (last) {
        clear_stamp(line_at(ring, end, end->at), end->at);
    }
    if (end->begun) {
        struct header_line *line = line_at(ring, end, end->header);
        line->published = end->at - end->header - SEGMENT_LINE;
        atomic_store_explicit(&line->stamp, end->header + 1, memory_order_release);
        end->begun = false;
    } else {
        atomic_store_explicit(&ring->written, end->at, memory_order_release);
    }
}

uint64_t line_ring_read_to(struct stream_ring *ring, struct line_ring_end *end)
{
    end->other = atomic_load_explicit(&ring->read, memory_order_acquire);
    return end->other;
}

void line_ring_fetch(const struct stream_ring *ring, const struct line_ring_end *end, size_t bytes)
{
    size_t free_bytes = size_min(bytes, plan_room(end));
    for (size_t i = 0; i < free_bytes; i += SEGMENT_LINE) {
        line_fetch(ring->data + place_of(end, end->at + i));
    }
}

void line_ring_expect(const struct stream_ring *ring, const struct line_ring_end *end)
{
    for (size_t line = 1; line <= EXPECTED_LINES; line++) {
        __builtin_prefetch(ring->data + place_of(end, end->at + line * SEGMENT_LINE));
    }
}

bool line_ring_take_header(struct stream_ring *ring, struct line_ring_end *end, void *ret_header)
{
    assert(end->at % SEGMENT_LINE == 0);
    const struct header_line *line = line_at(ring, end, end->at);
    if (atomic_load_explicit(&line->stamp, memory_order_acquire) != end->at + 1) {
        return false;
    }
    memcpy(ret_header, line->header, LINE_RING_HEADER_BYTES);
    assert(line->published < end->ring_bytes);
    end->at += SEGMENT_LINE;
    end->other = end->at + line->published;
    return true;
}

size_t line_ring_get(struct stream_ring *ring, struct line_ring_end *end, void *to, size_t bytes,
                     bool claims)
{
    if (end->other == end->at) {
        uint64_t written = atomic_load_explicit(&ring->written, memory_order_acquire);
        /* `written` is not updated with the first part of a message. */
        end->other = written > end->at ? written : end->at;
        assert(end->other - end->at <= end->ring_bytes);
    }
    size_t taken = size_min(size_min(bytes, LINE_RING_BLOCK_BYTES), straight(end));
    taken = size_min(taken, (size_t)(end->other - end->at));
    if (taken > 0) {
        bool whole = end->at % SEGMENT_LINE == 0, many = taken > CLAIM_ABOVE_BYTES;
        line_take(to, ring->data + place_of(end, end->at), taken, claims && whole && many);
        end->at += taken;
        atomic_store_explicit(&ring->read, end->at, memory_order_release);
    }
    return taken;
}

void line_ring_take(struct stream_ring *ring, struct line_ring_end *end, void *to, size_t bytes,
                    bool claims)
{
    assert(end->at % SEGMENT_LINE == 0 && line_ring_has(end, bytes));
    size_t first = size_min(bytes, straight(end));
    bool many = bytes > CLAIM_ABOVE_BYTES;
    if (first > 0) {
        line_take(to, ring->data + place_of(end, end->at), first, claims && many);
    }
    if (first < bytes) {
        line_take((char *)to + first, ring->data, bytes - first, claims && many);
    }
    end->at = end_of_line(end->at + bytes);
    atomic_store_explicit(&ring->read, end->at, memory_order_release);
}

void line_ring_finish(struct stream_ring *ring, struct line_ring_end *end)
{
    end->at = end_of_line(end->at);
    atomic_store_explicit(&ring->read, end->at, memory_order_release);
}
