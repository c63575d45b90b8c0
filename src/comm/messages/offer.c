/* Large messages between ranks of a host, in one copy instead of two. The sender puts the address
 * of the data into the stream, and the receiver copies the data out of the sender's memory
 * (process_vm_readv(2)). The send ends when the receiver has gone past the offer in the stream: no
 * other flag is needed, and many may be offered at once.
 *
 * A receiver that cannot read (memory of a device, rules of ptrace(2), a kernel without the call)
 * refuses: the sender then writes the data of each offer, one after the other, into a second ring,
 * and offers nothing more in this stream.
 *
 * No rank writes into another rank's memory. A sender whose send failed may use its buffer again
 * while it is being read; it has closed the communicator before. A sender that has died leaves its
 * process id, which another process may get; the kernel has marked the sender as dead before. So
 * the receiver checks for both after each read, and uses the data only if neither happened.
 *
 * Layer: comm. Memory: see streams.h. Thread: the holder of the messages' lane.
 */
#include "comm/messages/offer.h"

#include "comm/state/bell.h"
#include "comm/state/peers.h"
#include "core/size.h"

#include <assert.h>
#include <sys/types.h>
#include <sys/uio.h>

/* After this many bytes the receiver checks whether the sender has closed the communicator. */
enum { AT_ONCE_BYTES = 256 * 1024 };
enum { BYPASS_RING_BYTES = STREAM_BYTES / 4 };
/* If ranks share processors, smaller messages are faster through the ring. */
enum { OVERSUBSCRIBED_FROM_BYTES = 4 * 1024 * 1024 };

_Static_assert(offsetof(struct stream_ring, data) + BYPASS_RING_BYTES <= SECOND_RING_BYTES,
               "its counters and its data");

void offer_open(struct muster_comm *comm)
{
    size_t from = comm->reads ? comm->tuning->offers_from_bytes : SIZE_MAX;
    bool shares = comm->oversubscribed && from < OVERSUBSCRIBED_FROM_BYTES;
    comm->messages->offers_above_bytes = comm->tuning->offers_above_bytes;
    comm->messages->offers_from_bytes = shares ? OVERSUBSCRIBED_FROM_BYTES : from;
    for (int r = 0; r < comm->size; r++) {
        struct stream *s = &comm->messages->streams[r];
        s->bypass_in = s->bypass_out = line_ring_start(BYPASS_RING_BYTES);
    }
}

struct stream_ring *offer_bypass(struct stream_ring *ring)
{
    return (struct stream_ring *)(void *)ring->second;
}

/* ---- the sender ---- */

static bool is_refused(const struct stream *s)
{
    return atomic_load_explicit(&s->out_ring->refused, memory_order_relaxed);
}

/* One message alone is faster through the ring, because its sender copies in while its receiver
 * copies out. A sender that has more to copy at the same time, or a message to receive, gains if it
 * does not copy this one, unless all that waits is still in its L2 cache. */
bool offer_fits(const struct messages *m, const struct stream *s, const struct task *send)
{
    size_t bytes = matching_room(send);
    if (bytes < m->offers_from_bytes || !s->out_ring || !send->queued || send->transfer.done > 0) {
        return false;
    }
    bool many = s->waiting_bytes > m->offers_above_bytes;
    bool several = s->first_offered || send->transfer.next;
    bool exchanges = m->matching.posted && bytes / 2 >= m->offers_from_bytes;
    return many && (several || exchanges) && !is_refused(s);
}

bool offer_write(struct stream *s, struct task *send)
{
    uint64_t address = (uintptr_t)send->call.in;
    if (!line_ring_fits(s->out_ring, &s->out, sizeof address)) {
        return false;
    }
    struct header header = stream_header(send);
    header.offered = 1;
    bool begun = line_ring_begin(s->out_ring, &s->out, &header);
    size_t put = line_ring_put(s->out_ring, &s->out, &address, sizeof address);
    assert(begun && put == sizeof address && "it fits");
    line_ring_publish(s->out_ring, &s->out, true);
    bell_wake(s->control);
    send->transfer.offer_end = s->out.at;
    send->transfer.next = NULL;
    *(s->first_offered ? &s->last_offered->transfer.next : &s->first_offered) = send;
    s->last_offered = send;
    return true;
}

struct task *offer_take_read(struct stream *s)
{
    struct task *send = s->first_offered;
    if (!send || (s->out.other < send->transfer.offer_end &&
                  line_ring_read_to(s->out_ring, &s->out) < send->transfer.offer_end)) {
        return NULL;
    }
    s->first_offered = send->transfer.next;
    return send;
}

struct task *offer_refused(const struct stream *s)
{
    return s->first_offered && is_refused(s) ? s->first_offered : NULL;
}

/* ---- the receiver ---- */

void offer_take_address(struct stream *s)
{
    if (s->inbound.header.offered) {
        size_t n = line_ring_get(s->in_ring, &s->in, &s->address, sizeof s->address, false);
        assert(n == sizeof s->address && "it is published with the header");
    }
}

/* Whether the rank has closed or died; then the data that was read from it does not count. */
static bool is_gone(const struct muster_comm *comm, int rank)
{
    const struct control *control = peers_control(comm, rank);
    atomic_thread_fence(memory_order_acquire); /* not before the read */
    return atomic_load_explicit(&control->closed, memory_order_relaxed) ||
           heartbeat_is_dead(&control->heartbeat);
}

/* Returns a negative number if the memory cannot be read. */
static ssize_t read_memory(const struct muster_comm *comm, const struct stream *s, int from,
                           char *to, size_t bytes)
{
    const struct inbound *in = &s->inbound;
    pid_t pid = atomic_load_explicit(&s->control->pid, memory_order_relaxed);
    struct iovec here = {to, size_min(bytes, AT_ONCE_BYTES)};
    struct iovec there = {(void *)(uintptr_t)(s->address + in->done), here.iov_len};
    ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
    return is_gone(comm, from) ? 0 : n > 0 ? n : -1;
}

static void refuse(struct stream *s)
{
    s->refused = true;
    s->inbound.done = 0; /* all of it is sent again */
    atomic_store_explicit(&s->in_ring->refused, 1, memory_order_relaxed);
    bell_wake(s->control);
}

static size_t read_bypass(struct stream *s, char *to, size_t bytes)
{
    struct stream_ring *ring = offer_bypass(s->in_ring);
    struct inbound *in = &s->inbound;
    if (!s->bypasses) {
        struct header header;
        s->bypasses = line_ring_take_header(ring, &s->bypass_in, &header);
        assert(!s->bypasses || header.bytes == in->header.bytes);
    }
    size_t n = s->bypasses ? line_ring_get(ring, &s->bypass_in, to, bytes, false) : 0;
    if (n > 0) {
        bell_wake(s->control); /* the sender may wait for room */
    }
    return n;
}

size_t offer_read(struct muster_comm *comm, struct stream *s, int from, char *to, size_t bytes)
{
    assert(s->in_ring && s->inbound.header.offered);
    if (s->refused) {
        return read_bypass(s, to, bytes);
    }
    ssize_t n = read_memory(comm, s, from, to, bytes);
    if (n < 0) {
        refuse(s);
    }
    return n < 0 ? 0 : (size_t)n;
}

void offer_finish(struct stream *s)
{
    if (s->bypasses) {
        line_ring_finish(offer_bypass(s->in_ring), &s->bypass_in);
        s->bypasses = false;
    }
}
