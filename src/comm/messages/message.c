/* Messages with tags. Between two ranks runs one stream of bytes: a header, then the data, message
 * after message (matching.h says to which receive). Whoever waits for a message reads all streams.
 *
 * Layer: comm. Memory: struct messages owns what has come unexpected. Thread: the holder of the
 * messages' lane.
 */
#include "comm/messages/message.h"

#include "comm/messages/matching.h"
#include "comm/shm/line_ring.h"
#include "comm/state/bell.h"
#include "comm/tcp/link.h"

#include <assert.h>
#include <stdlib.h>

/* After so much of a message its caller looks whether it was aborted. */
enum { STEP_BYTES = 256 * 1024 };

struct header {
    uint64_t bytes;
    int32_t tag;
    uint32_t zero;
};

/* What is being read from one rank. */
struct inbound {
    struct header header;
    size_t header_bytes;
    size_t done;
    struct task *to;               /* the receive it goes to … */
    struct unexpected *unexpected; /* … or where it waits for one */
};

/* To and from one rank. */
struct stream {
    struct inbound inbound;
    struct line_ring_end in; /* on this host */
    struct line_ring_end out;
    struct task *sending; /* the send whose bytes go now */
};

struct messages {
    struct stream *streams;
    struct matching matching;
};

int message_init(struct muster_comm *comm, struct muster_err *err)
{
    struct messages *m = calloc(1, sizeof *m);
    if (m) {
        comm->messages = m;
        m->streams = calloc((size_t)comm->size, sizeof *m->streams);
    }
    return m && m->streams ? 0 : muster_fail(err, MUSTER_ENOMEM, "no memory for messages");
}

void message_free(struct muster_comm *comm)
{
    struct messages *m = comm->messages;
    if (!m) {
        return;
    }
    for (int r = 0; m->streams && r < comm->size; r++) {
        free(m->streams[r].inbound.unexpected);
    }
    matching_done(&m->matching);
    free(m->streams);
    free(m);
}

/* ---- reading ---- */

/* As many bytes as have come. */
static size_t stream_read(struct muster_comm *comm, int from, void *data, size_t bytes)
{
    int local = comm->peers[from].local;
    if (local < 0) {
        return (size_t)link_stream_read(comm, from, data, bytes);
    }
    struct stream_ring *ring = segment_stream(&comm->segment, local, comm->local_rank);
    size_t n = line_ring_get(ring, &comm->messages->streams[from].in, data, bytes, !comm->intel);
    if (n > 0) {
        bell_wake(segment_control(&comm->segment, local)); /* it may wait for room */
    }
    return n;
}

static void stream_skip(struct muster_comm *comm, int from)
{
    int local = comm->peers[from].local;
    if (local >= 0) {
        struct stream_ring *ring = segment_stream(&comm->segment, local, comm->local_rank);
        line_ring_skip(ring, &comm->messages->streams[from].in);
    }
}

static struct muster_message message_of(const struct inbound *in, int from)
{
    return (struct muster_message){from, in->header.tag, (size_t)in->header.bytes};
}

/* False: there is no room for it now. */
static bool give_place(struct matching *m, struct inbound *in, int from)
{
    struct muster_message message = message_of(in, from);
    in->to = matching_take_posted(m, &message);
    in->unexpected = in->to ? NULL : matching_make_room(m, &message);
    return in->to || in->unexpected;
}

static void finish_inbound(struct matching *m, struct inbound *in)
{
    assert(in->done == in->header.bytes && !in->unexpected != !in->to);
    if (in->to) {
        in->to->transfer.ended = true;
    } else {
        matching_queue(m, in->unexpected);
    }
    *in = (struct inbound){0};
}

/* Where the next bytes go, and how many; what does not fit the receive is thrown away. */
static size_t next_place(struct inbound *in, char *waste, size_t waste_bytes, char **ret)
{
    size_t left = (size_t)in->header.bytes - in->done;
    if (in->unexpected) {
        *ret = in->unexpected->data + in->done;
        return left;
    }
    size_t room = matching_room(in->to);
    if (in->done < room) {
        *ret = (char *)in->to->call.out + in->done;
        return left < room - in->done ? left : room - in->done;
    }
    *ret = waste;
    return left < waste_bytes ? left : waste_bytes;
}

static size_t read_header(struct muster_comm *comm, struct inbound *in, int from)
{
    size_t n = stream_read(comm, from, (char *)&in->header + in->header_bytes,
                           sizeof in->header - in->header_bytes);
    in->header_bytes += n;
    if (in->header_bytes == sizeof in->header) {
        stream_skip(comm, from);
    }
    return n;
}

static size_t read_data(struct muster_comm *comm, struct inbound *in, int from)
{
    char waste[4096], *place;
    size_t bytes = next_place(in, waste, sizeof waste, &place);
    size_t n = stream_read(comm, from, place, bytes);
    in->done += n;
    return n;
}

/* Reads what has come from one rank, as far as it has a place. The bytes read. */
static size_t read_stream(struct muster_comm *comm, int from)
{
    struct messages *m = comm->messages;
    struct inbound *in = &m->streams[from].inbound;
    size_t sum = 0, n = 1;
    while (n > 0 && sum < STEP_BYTES) {
        n = in->header_bytes < sizeof in->header ? read_header(comm, in, from) : 0;
        if (in->header_bytes == sizeof in->header) {
            if (!in->to && !in->unexpected && !give_place(&m->matching, in, from)) {
                return sum + n;
            }
            n += in->done < in->header.bytes ? read_data(comm, in, from) : 0;
            if (in->done == in->header.bytes) {
                stream_skip(comm, from);
                finish_inbound(&m->matching, in);
                n++;
            }
        }
        sum += n;
    }
    return sum;
}

bool message_read(struct muster_comm *comm)
{
    size_t sum = 0;
    for (int r = 0; r < comm->size; r++) {
        sum += read_stream(comm, r);
    }
    return sum > 0;
}

/* ---- tasks ---- */

/* A message for it that nobody had asked for, and of which a part has come: the rest goes straight
 * to the receive. */
static bool take_over(struct muster_comm *comm, struct task *task)
{
    struct messages *m = comm->messages;
    for (int r = 0; r < comm->size; r++) {
        struct inbound *in = &m->streams[r].inbound;
        if (in->unexpected && matching_fits(task, r, in->header.tag)) {
            matching_deliver(task, in->unexpected, in->done);
            matching_free_room(&m->matching, in->unexpected);
            in->unexpected = NULL;
            in->to = task;
            return true;
        }
    }
    return false;
}

static int receive_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct messages *m = comm->messages;
    struct transfer *t = &task->transfer;
    if (!task->begun) {
        task->begun = true;
        if (!matching_take_unexpected(&m->matching, task) && !take_over(comm, task)) {
            matching_post(&m->matching, task);
        }
    }
    if (!t->ended && !task->queued) {
        task->moved |= message_read(comm);
    }
    if (t->ended && t->too_big) {
        return muster_fail(err, MUSTER_ETOOBIG,
                           "a message of %zu bytes from rank %d came for a buffer of %zu",
                           t->message.size_bytes, t->message.source, matching_room(task));
    }
    return t->ended;
}

/* The header and the first of the data are published together: one look finds both. */
static void write_here(struct muster_comm *comm, struct task *task, const struct header *header)
{
    struct transfer *t = &task->transfer;
    int local = comm->peers[task->call.peer].local;
    struct stream_ring *ring = segment_stream(&comm->segment, comm->local_rank, local);
    struct line_ring_end *end = &comm->messages->streams[task->call.peer].out;
    size_t before = t->done, total = sizeof *header + (size_t)header->bytes, n = 1;
    if (t->done == 0) {
        t->done = line_ring_put(ring, end, header, sizeof *header);
        line_ring_end_line(end);
    }
    while (n > 0 && t->done > 0 && t->done - before < STEP_BYTES) {
        const char *data = (const char *)task->call.in + (t->done - sizeof *header);
        n = t->done < total ? line_ring_put(ring, end, data, total - t->done) : 0;
        t->done += n;
        if (n > 0 || before == 0) {
            line_ring_publish(ring, end);
            bell_wake(segment_control(&comm->segment, local));
        }
    }
}

static void write_there(struct muster_comm *comm, struct task *task, const struct header *header)
{
    struct transfer *t = &task->transfer;
    size_t total = sizeof *header + (size_t)header->bytes;
    for (int64_t n = 1; n > 0 && t->done < total; t->done += (size_t)n) {
        bool data = t->done >= sizeof *header;
        const char *from = data ? (const char *)task->call.in + (t->done - sizeof *header)
                                : (const char *)header + t->done;
        n = link_stream_write(comm, task->call.peer, from,
                              (data ? total : sizeof *header) - t->done);
    }
}

static int send_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    (void)err;
    struct transfer *t = &task->transfer;
    struct task **sending = &comm->messages->streams[task->call.peer].sending;
    task->begun = true;
    if (*sending && *sending != task) {
        return 0;
    }
    *sending = task;
    struct header header = {.bytes = matching_room(task), .tag = task->call.tag};
    size_t before = t->done;
    if (comm->peers[task->call.peer].local >= 0) {
        write_here(comm, task, &header);
    } else {
        write_there(comm, task, &header);
    }
    task->moved |= t->done > before;
    if (t->done == sizeof header + (size_t)header.bytes) {
        *sending = NULL;
        return 1;
    }
    if (!task->queued) { /* the peer may be waiting for room, too */
        task->moved |= message_read(comm);
    }
    return 0;
}

void message_start(struct task *task)
{
    task->transfer = (struct transfer){0};
    task->step = task->call.kind == MUSTER_SEND ? send_step : receive_step;
}
