/* Messages with tags. Between two ranks there is one stream of bytes: a header and the data of
 * each message, one message after the other (matching.h decides which receive gets it). A thread
 * that waits for a message reads all streams.
 *
 * Layer: comm. Memory: see streams.h. Thread: the holder of the messages' lane.
 */
#include "comm/messages/message.h"

#include "comm/messages/offer.h"
#include "comm/messages/streams.h"
#include "comm/state/bell.h"
#include "comm/state/call_log.h"
#include "comm/tcp/link.h"

#include <assert.h>

/* After this many bytes of a message, the caller checks whether it was aborted. */
enum { STEP_BYTES = 256 * 1024 };

/* Ends a task whose message has been sent or received. A thread that runs a task in no lane sees
 * this by itself. */
static void end_task(struct messages *m, struct task *task)
{
    assert(task->begun);
    task->transfer.ended = true;
    if (task->queued) {
        task->transfer.next = NULL;
        *(m->ended ? &m->last_ended->transfer.next : &m->ended) = task;
        m->last_ended = task;
    }
}

struct task *message_take_ended(struct muster_comm *comm)
{
    struct messages *m = comm->messages;
    struct task *task = m->ended;
    if (task) {
        m->ended = task->transfer.next;
    }
    return task;
}

/* ---- reading ---- */

/* Reads the bytes of a message that have arrived. */
static size_t stream_read(struct muster_comm *comm, int from, void *data, size_t bytes)
{
    struct stream *s = &comm->messages->streams[from];
    if (!s->in_ring) {
        return (size_t)link_stream_read(comm, from, data, bytes);
    }
    size_t n = line_ring_get(s->in_ring, &s->in, data, bytes, comm->tuning->claims);
    if (n > 0) {
        bell_wake(s->control); /* the sender may wait for room */
    }
    return n;
}

/* Finds a place for an inbound message. Returns false if there is no room for it now. */
static bool give_place(struct matching *m, struct inbound *in, int from)
{
    struct muster_message message = stream_message(in, from);
    in->to = matching_take_posted(m, &message);
    in->unexpected = in->to ? NULL : matching_make_room(m, &message);
    return in->to || in->unexpected;
}

static void finish_inbound(struct messages *m, struct stream *s)
{
    struct inbound *in = &s->inbound;
    assert(in->done == in->header.bytes && !in->unexpected != !in->to);
    if (s->in_ring) {
        offer_finish(s);
        line_ring_finish(s->in_ring, &s->in);
        bell_wake(s->control);
    }
    if (in->to) {
        end_task(m, in->to);
    } else {
        matching_queue(&m->matching, in->unexpected);
    }
    *in = (struct inbound){0};
}

/* Returns how many bytes come next, and where they are put; bytes that do not fit the receive are
 * thrown away. */
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

/* Reads from the header of the next message. Returns how many bytes of it have arrived. */
static size_t read_header(struct muster_comm *comm, struct stream *s, int from)
{
    struct inbound *in = &s->inbound;
    size_t left = sizeof in->header - in->header_bytes, n;
    if (left == 0) {
        return 0;
    }
    if (s->in_ring) {
        if (comm->tuning->fetches) {
            line_ring_expect(s->in_ring, &s->in);
        }
        n = line_ring_take_header(s->in_ring, &s->in, &in->header) ? left : 0;
        if (n > 0) {
            offer_take_address(s);
        }
    } else {
        n = (size_t)link_stream_read(comm, from, (char *)&in->header + in->header_bytes, left);
    }
    in->header_bytes += n;
    return n;
}

static size_t read_data(struct muster_comm *comm, struct stream *s, int from)
{
    struct inbound *in = &s->inbound;
    if (in->done == in->header.bytes) {
        return 0;
    }
    char waste[4096], *place;
    size_t bytes = next_place(in, waste, sizeof waste, &place);
    size_t n = in->header.offered ? offer_read(comm, s, from, place, bytes)
                                  : stream_read(comm, from, place, bytes);
    in->done += n;
    return n;
}

/* Whether the message is read as a whole. For larger messages, each block that was read is given
 * back to the writer at once. */
static bool is_taken_whole(const struct stream *s)
{
    const struct inbound *in = &s->inbound;
    return in->to && in->header.bytes <= LINE_RING_BLOCK_BYTES &&
           in->header.bytes <= matching_room(in->to) && stream_has_whole(s);
}

/* Reads the message as a whole. Returns its bytes. */
static size_t take_whole(struct muster_comm *comm, struct stream *s)
{
    struct task *to = s->inbound.to;
    size_t bytes = (size_t)s->inbound.header.bytes;
    stream_take(comm, s, to->call.out);
    end_task(comm->messages, to);
    return bytes;
}

/* Reads what has arrived from one rank, as far as there is a place for it. Returns how many bytes
 * it read. */
static size_t read_stream(struct muster_comm *comm, struct stream *s, int from)
{
    struct messages *m = comm->messages;
    struct inbound *in = &s->inbound;
    size_t sum = 0, n = 1;
    while (n > 0 && sum < STEP_BYTES) {
        n = read_header(comm, s, from);
        sum += n;
        if (in->header_bytes < sizeof in->header ||
            (!in->to && !in->unexpected && !give_place(&m->matching, in, from))) {
            break;
        }
        if (is_taken_whole(s)) {
            sum += take_whole(comm, s);
            n++;
            continue;
        }
        size_t data = read_data(comm, s, from);
        sum += data;
        n += data;
        if (in->done == in->header.bytes) {
            finish_inbound(m, s);
            n++;
        }
    }
    return sum;
}

static bool read_all(struct muster_comm *comm)
{
    size_t sum = 0;
    for (int r = 0; r < comm->size; r++) {
        sum += read_stream(comm, &comm->messages->streams[r], r);
    }
    return sum > 0;
}

/* ---- writing ---- */

/* Publishes the header together with the first data, so that one look finds both. Returns true when
 * all of the message is written. */
static bool write_here(struct stream *s, struct stream_ring *ring, struct line_ring_end *end,
                       struct task *task)
{
    struct transfer *t = &task->transfer;
    struct header header = stream_header(task);
    size_t before = t->done, total = sizeof header + (size_t)header.bytes;
    if (t->done == 0 && line_ring_begin(ring, end, &header)) {
        t->done = sizeof header;
    }
    while (t->done > 0 && t->done - before < STEP_BYTES) {
        const char *data = (const char *)task->call.in + (t->done - sizeof header);
        size_t n = t->done < total ? line_ring_put(ring, end, data, total - t->done) : 0;
        if (n == 0 && !end->begun) {
            break;
        }
        t->done += n;
        line_ring_publish(ring, end, t->done == total);
        bell_wake(s->control);
    }
    return t->done == total;
}

static bool write_there(struct muster_comm *comm, struct task *task)
{
    struct transfer *t = &task->transfer;
    struct header header = stream_header(task);
    size_t total = sizeof header + (size_t)header.bytes;
    for (int64_t n = 1; n > 0 && t->done < total; t->done += (size_t)n) {
        bool data = t->done >= sizeof header;
        const char *from = data ? (const char *)task->call.in + (t->done - sizeof header)
                                : (const char *)&header + t->done;
        n = link_stream_write(comm, task->call.peer, from,
                              (data ? total : sizeof header) - t->done);
    }
    return t->done == total;
}

/* ---- tasks ---- */

/* Takes over a message that fits this receive, that no receive had asked for, and that has arrived
 * in part: the rest is written directly to the receive. */
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

void message_begin(struct muster_comm *comm, struct task *task)
{
    struct messages *m = comm->messages;
    assert(!task->begun);
    task->begun = true;
    if (task->call.kind == MUSTER_SEND) {
        struct stream *s = &m->streams[task->call.peer];
        task->transfer.next = NULL;
        *(s->first_send ? &s->last_send->transfer.next : &s->first_send) = task;
        s->last_send = task;
        m->sends++;
        s->waiting_bytes += matching_room(task);
    } else if (m->matching.unexpected && matching_take_unexpected(&m->matching, task)) {
        end_task(m, task);
    } else if (m->matching.unexpected_bytes == 0 || !take_over(comm, task)) {
        matching_post(&m->matching, task);
    }
}

static void end_send(struct messages *m, struct stream *s, struct task *send)
{
    s->waiting_bytes -= matching_room(send);
    m->sends--;
    end_task(m, send);
}

/* A send that was offered ends when its data has been read; if the offer was refused, the data is
 * written after all. */
static bool push_offered(struct messages *m, struct stream *s)
{
    bool moved = false;
    for (struct task *task; (task = offer_take_read(s)); moved = true) {
        end_send(m, s, task);
    }
    struct task *refused = offer_refused(s);
    if (refused) {
        size_t before = refused->transfer.done;
        (void)write_here(s, offer_bypass(s->out_ring), &s->bypass_out, refused);
        moved |= refused->transfer.done > before;
    }
    return moved;
}

bool message_push(struct muster_comm *comm, int to)
{
    struct messages *m = comm->messages;
    struct stream *s = &m->streams[to];
    bool moved = push_offered(m, s);
    while (s->first_send) {
        struct task *task = s->first_send, *next = task->transfer.next;
        size_t before = task->transfer.done;
        bool offers = offer_fits(m, s, task);
        bool all = offers        ? offer_write(s, task)
                   : s->out_ring ? write_here(s, s->out_ring, &s->out, task)
                                 : write_there(comm, task);
        moved |= offers ? all : task->transfer.done > before;
        if (!all) {
            break;
        }
        s->first_send = next;
        if (!offers) {
            end_send(m, s, task);
        }
    }
    return moved;
}

bool message_move(struct muster_comm *comm)
{
    bool moved = false;
    for (int r = 0; r < comm->size && comm->messages->sends > 0; r++) {
        moved |= message_push(comm, r);
    }
    return read_all(comm) || moved;
}

static int message_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct transfer *t = &task->transfer;
    if (!task->begun) {
        message_begin(comm, task);
    }
    if (!t->ended && !task->queued) {
        task->moved |= message_move(comm);
    }
    call_log_message(comm, task, !t->ended);
    if (t->ended && t->too_big) {
        return muster_fail(
            err, MUSTER_ETOOBIG,
            "a message of %zu bytes from rank %d does not fit the receive buffer of %zu bytes",
            t->message.size_bytes, t->message.source, matching_room(task));
    }
    return t->ended;
}

void message_start(struct task *task)
{
    task->transfer = (struct transfer){0};
    task->step = message_step;
}
