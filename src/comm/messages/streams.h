/* The state of the streams: between two ranks there is one stream of bytes, in a line ring or over
 * a link.
 *
 * Layer: comm; for the files of this folder. Memory: struct messages owns what has come unexpected.
 * Thread: the holder of the messages' lane.
 */
#pragma once

#include "comm/messages/matching.h"
#include "comm/shm/line_ring.h"
#include "comm/state/bell.h"

struct header {
    uint64_t bytes;
    int32_t tag;
    uint32_t offered; /* 1: the header is followed by the data's address, not the data: offer.h */
};

/* The message that is being read from one rank. */
struct inbound {
    struct header header;
    size_t header_bytes;
    size_t done;
    struct task *to;               /* the receive that gets it, … */
    struct unexpected *unexpected; /* … or the place where it waits for a receive */
};

_Static_assert((int)sizeof(struct header) == (int)LINE_RING_HEADER_BYTES, "it is a ring's header");

/* The streams to and from one rank. */
struct stream {
    struct stream_ring *in_ring; /* NULL: the rank is on another host */
    struct stream_ring *out_ring;
    struct control *control; /* that rank's control words */
    struct line_ring_end in;
    struct line_ring_end out;
    struct inbound inbound;
    size_t waiting_bytes;    /* bytes of the sends to that rank that have not ended */
    struct task *first_send; /* the send that is being written; the others wait behind it */
    struct task *last_send;
    struct task *first_offered; /* sends that the receiver has not read yet, in order */
    struct task *last_offered;
    uint64_t address; /* where the inbound message's data is in its sender's memory, if it is
                         offered */
    bool refused;     /* by this rank: the data of offers comes through the second ring */
    bool bypasses;    /* the inbound message has begun to come through the second ring */
    struct line_ring_end bypass_in;
    struct line_ring_end bypass_out;
};

struct messages {
    struct stream *streams;
    struct matching matching;
    int sends;                /* sends in all streams that have not ended */
    size_t offers_from_bytes; /* messages of at least this size are offered (SIZE_MAX: none), … */
    size_t offers_above_bytes; /* … while sends of more than this many bytes wait for the same
                                  rank */
    struct task *ended;        /* ended tasks of the lane that its holder has not seen */
    struct task *last_ended;
};

/* Whether all data of the inbound message is in the ring, and none of it has been read. */
static inline bool stream_has_whole(const struct stream *s)
{
    const struct inbound *in = &s->inbound;
    return s->in_ring && !in->header.offered && in->done == 0 &&
           line_ring_has(&s->in, (size_t)in->header.bytes);
}

/* Reads the inbound message as a whole. */
static inline void stream_take(struct muster_comm *comm, struct stream *s, void *to)
{
    line_ring_take(s->in_ring, &s->in, to, (size_t)s->inbound.header.bytes, comm->tuning->claims);
    bell_wake(s->control);
    s->inbound = (struct inbound){0};
}

static inline struct header stream_header(const struct task *send)
{
    return (struct header){.bytes = matching_room(send), .tag = send->call.tag};
}

static inline struct muster_message stream_message(const struct inbound *in, int from)
{
    return (struct muster_message){
        .source = from, .tag = in->header.tag, .size_bytes = (size_t)in->header.bytes};
}
