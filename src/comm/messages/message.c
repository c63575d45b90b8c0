/* Messages with tags. Between two ranks runs one stream of bytes: a header, then the data, message
 * after message. Whoever waits for a message reads all streams: a message goes straight into the
 * buffer of the first posted receive that it fits; one that nobody has asked for yet is parked in
 * memory, so that it does not bar the way for those behind it.
 *
 * Layer: comm. Memory: struct messages owns the parked. Thread: the holder of the messages' lane.
 */
#include "comm/messages/message.h"

#include "comm/state/bell.h"
#include "comm/tcp/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PARKED_LIMIT_BYTES = 256 * 1024 * 1024 };

struct header {
    uint64_t bytes;
    int32_t tag;
    uint32_t zero;
};

struct parked {
    struct parked *next;
    struct muster_message message;
    char data[];
};

/* What is being read from one rank. */
struct inbound {
    struct header header;
    size_t header_bytes;
    size_t done;
    struct task *to;       /* the receive it goes to … */
    struct parked *parked; /* … or where it is parked */
};

struct messages {
    struct inbound *inbound;
    struct task **sending; /* the send that has the stream to each rank */
    struct task *posted;
    struct parked *parked; /* complete, in order of arrival */
    size_t parked_bytes;
};

int message_init(struct muster_comm *comm, struct muster_err *err)
{
    struct messages *m = calloc(1, sizeof *m);
    if (m) {
        comm->messages = m;
        m->inbound = calloc((size_t)comm->size, sizeof *m->inbound);
        m->sending = calloc((size_t)comm->size, sizeof *m->sending);
    }
    return m && m->inbound && m->sending
               ? 0
               : muster_fail(err, MUSTER_ENOMEM, "no memory for messages");
}

void message_free(struct muster_comm *comm)
{
    struct messages *m = comm->messages;
    if (!m) {
        return;
    }
    for (int r = 0; m->inbound && r < comm->size; r++) {
        free(m->inbound[r].parked);
    }
    while (m->parked) {
        struct parked *next = m->parked->next;
        free(m->parked);
        m->parked = next;
    }
    free(m->inbound);
    free(m->sending);
    free(m);
}

/* ---- the stream between two ranks of a host ---- */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t ring_write(struct stream_ring *ring, const char *data, size_t bytes)
{
    uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_acquire);
    size_t length = smaller(bytes, STREAM_BYTES - (size_t)(written - read));
    size_t at = (size_t)(written % STREAM_BYTES);
    size_t straight = smaller(length, STREAM_BYTES - at);
    memcpy(ring->data + at, data, straight);
    memcpy(ring->data, data + straight, length - straight);
    atomic_store_explicit(&ring->written, written + length, memory_order_release);
    return length;
}

static size_t ring_read(struct stream_ring *ring, char *data, size_t bytes)
{
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    uint64_t written = atomic_load_explicit(&ring->written, memory_order_acquire);
    size_t length = smaller(bytes, (size_t)(written - read));
    size_t at = (size_t)(read % STREAM_BYTES);
    size_t straight = smaller(length, STREAM_BYTES - at);
    memcpy(data, ring->data + at, straight);
    memcpy(data + straight, ring->data, length - straight);
    atomic_store_explicit(&ring->read, read + length, memory_order_release);
    return length;
}

/* As many bytes as go now; negative: the link is lost. */
static int64_t stream_write(struct muster_comm *comm, int to, const void *data, size_t bytes)
{
    int local = comm->peers[to].local;
    if (local < 0) {
        return link_stream_write(comm, to, data, bytes);
    }
    size_t n = bytes == 0 ? 0
                          : ring_write(segment_stream(&comm->segment, comm->local_rank, local),
                                       data, bytes);
    if (n > 0) {
        bell_wake(segment_control(&comm->segment, local));
    }
    return (int64_t)n;
}

static int64_t stream_read(struct muster_comm *comm, int from, void *data, size_t bytes)
{
    int local = comm->peers[from].local;
    if (local < 0) {
        return link_stream_read(comm, from, data, bytes);
    }
    size_t n = bytes == 0 ? 0
                          : ring_read(segment_stream(&comm->segment, local, comm->local_rank), data,
                                      bytes);
    if (n > 0) {
        bell_wake(segment_control(&comm->segment, local));
    }
    return (int64_t)n;
}

/* ---- reading ---- */

static bool fits(const struct task *task, int from, int tag)
{
    const struct muster_call *call = &task->call;
    return (call->peer == MUSTER_ANY_SOURCE || call->peer == from) &&
           (call->tag == MUSTER_ANY_TAG || call->tag == tag);
}

/* The first posted receive for it, taken from the list. */
static struct task *take_posted(struct messages *m, int from, int tag)
{
    for (struct task **at = &m->posted; *at; at = &(*at)->transfer.next_posted) {
        struct task *task = *at;
        if (fits(task, from, tag)) {
            *at = task->transfer.next_posted;
            return task;
        }
    }
    return NULL;
}

static size_t room_of(const struct task *task)
{
    return task->call.count * task->unit;
}

/* 0: there is no room to park it now. */
static int give_place(struct messages *m, struct inbound *in, int from)
{
    in->to = take_posted(m, from, in->header.tag);
    if (in->to) {
        struct transfer *t = &in->to->transfer;
        t->message = (struct muster_message){from, in->header.tag, (size_t)in->header.bytes};
        t->too_big = in->header.bytes > room_of(in->to);
        return 1;
    }
    if (in->header.bytes > PARKED_LIMIT_BYTES - m->parked_bytes) {
        return 0;
    }
    in->parked = malloc(sizeof *in->parked + in->header.bytes);
    if (!in->parked) {
        return 0;
    }
    m->parked_bytes += in->header.bytes;
    in->parked->next = NULL;
    in->parked->message = (struct muster_message){from, in->header.tag, (size_t)in->header.bytes};
    return 1;
}

/* Hands a parked message over; it is gone then. */
static void unpark(struct messages *m, struct parked *parked, struct task *task)
{
    struct transfer *t = &task->transfer;
    assert(!t->ended && m->parked_bytes >= parked->message.size_bytes);
    t->message = parked->message;
    t->too_big = t->message.size_bytes > room_of(task);
    t->ended = true;
    size_t bytes = smaller(t->message.size_bytes, room_of(task));
    if (bytes > 0) {
        memcpy(task->call.out, parked->data, bytes);
    }
    m->parked_bytes -= t->message.size_bytes;
    free(parked);
}

static void finish_inbound(struct messages *m, struct inbound *in)
{
    struct parked *parked = in->parked;
    struct task *task = in->to;
    assert(in->done == in->header.bytes && !parked != !task);
    *in = (struct inbound){0};
    if (task) {
        task->transfer.ended = true;
        return;
    }
    /* A receive may have been posted while the message was being parked. */
    task = take_posted(m, parked->message.source, parked->message.tag);
    if (task) {
        unpark(m, parked, task);
        return;
    }
    struct parked **at = &m->parked;
    while (*at) {
        at = &(*at)->next;
    }
    *at = parked;
}

/* Where the next bytes go, and how many; what does not fit the receive is thrown away. */
static size_t next_place(struct inbound *in, char *waste, size_t waste_bytes, char **ret)
{
    size_t left = (size_t)in->header.bytes - in->done;
    if (in->parked) {
        *ret = in->parked->data + in->done;
        return left;
    }
    size_t room = room_of(in->to);
    if (in->done < room) {
        *ret = (char *)in->to->call.out + in->done;
        return smaller(left, room - in->done);
    }
    *ret = waste;
    return smaller(left, waste_bytes);
}

static int lost(int from, struct muster_err *err)
{
    muster_fail(err, MUSTER_EPEERDEAD, "the link to rank %d is lost", from);
    if (err) {
        err->rank = from;
    }
    return MUSTER_EPEERDEAD;
}

static int64_t read_header(struct muster_comm *comm, struct inbound *in, int from)
{
    int64_t n = stream_read(comm, from, (char *)&in->header + in->header_bytes,
                            sizeof in->header - in->header_bytes);
    in->header_bytes += n > 0 ? (size_t)n : 0;
    return n;
}

/* Reads what has come from one rank. */
static int pump(struct muster_comm *comm, int from, struct muster_err *err)
{
    struct messages *m = comm->messages;
    struct inbound *in = &m->inbound[from];
    for (;;) {
        if (in->header_bytes < sizeof in->header) {
            int64_t n = read_header(comm, in, from);
            if (n <= 0 || in->header_bytes < sizeof in->header) {
                return n < 0 ? lost(from, err) : 0;
            }
        }
        if (!in->to && !in->parked && !give_place(m, in, from)) {
            return 0;
        }
        while (in->done < in->header.bytes) {
            char waste[4096], *place;
            size_t bytes = next_place(in, waste, sizeof waste, &place);
            int64_t n = stream_read(comm, from, place, bytes);
            if (n <= 0) {
                return n < 0 ? lost(from, err) : 0;
            }
            in->done += (size_t)n;
        }
        finish_inbound(m, in);
    }
}

static int pump_all(struct muster_comm *comm, struct muster_err *err)
{
    int rc = 0;
    for (int r = 0; rc == 0 && r < comm->size; r++) {
        rc = pump(comm, r, err);
    }
    return rc;
}

/* ---- tasks ---- */

static bool take_parked(struct messages *m, struct task *task)
{
    for (struct parked **at = &m->parked; *at; at = &(*at)->next) {
        struct parked *p = *at;
        if (fits(task, p->message.source, p->message.tag)) {
            *at = p->next;
            unpark(m, p, task);
            return true;
        }
    }
    return false;
}

static void post(struct messages *m, struct task *task)
{
    struct task **at = &m->posted;
    while (*at) {
        assert(*at != task && "it is posted once");
        at = &(*at)->transfer.next_posted;
    }
    *at = task;
}

static int receive_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct transfer *t = &task->transfer;
    if (!task->begun) {
        task->begun = true;
        if (!take_parked(comm->messages, task)) {
            post(comm->messages, task);
        }
    }
    int rc = t->ended ? 0 : pump_all(comm, err);
    if (t->ended && t->too_big) {
        return muster_fail(err, MUSTER_ETOOBIG,
                           "a message of %zu bytes from rank %d came for a buffer of %zu",
                           t->message.size_bytes, t->message.source, room_of(task));
    }
    return rc < 0 ? rc : t->ended;
}

static int write_some(struct muster_comm *comm, struct task *task, const void *data, size_t bytes,
                      struct muster_err *err)
{
    struct transfer *t = &task->transfer;
    while (t->done < bytes) {
        int64_t n =
            stream_write(comm, task->call.peer, (const char *)data + t->done, bytes - t->done);
        if (n <= 0) {
            return n < 0 ? lost(task->call.peer, err) : 0;
        }
        t->done += (size_t)n;
    }
    return 1;
}

static int send_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct transfer *t = &task->transfer;
    struct task **sending = &comm->messages->sending[task->call.peer];
    task->begun = true;
    if (*sending && *sending != task) {
        return 0;
    }
    *sending = task;
    struct header header = {.bytes = room_of(task), .tag = task->call.tag};
    int rc = 1;
    if (!t->header_done) {
        rc = write_some(comm, task, &header, sizeof header, err);
        t->header_done = rc == 1;
        t->done = rc == 1 ? 0 : t->done;
    }
    rc = rc == 1 ? write_some(comm, task, task->call.in, room_of(task), err) : rc;
    if (rc == 1) {
        *sending = NULL;
        return 1;
    }
    /* The peer may be waiting for room, too. */
    return rc < 0 ? rc : pump_all(comm, err);
}

void message_start(struct task *task)
{
    task->transfer = (struct transfer){0};
    task->step = task->call.kind == MUSTER_SEND ? send_step : receive_step;
}
