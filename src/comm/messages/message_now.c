/* Messages that need no task: a send for which there is room, and a receive whose message is there
 * or comes within some microseconds. When two ranks answer each other, most of their time passes
 * between the arrival of the data and the answer.
 *
 * Layer: comm. Memory: see streams.h. Thread: the holder of the messages' lane.
 */
#include "comm/messages/message.h"

#include "comm/messages/offer.h"
#include "comm/messages/streams.h"
#include "comm/shm/line.h"
#include "comm/state/bell.h"

#include <assert.h>
#include <sched.h>

_Static_assert((int)MESSAGE_NOW_BYTES == (int)LINE_RING_BLOCK_BYTES, "it is published as one");

/* How often to look for a message before its receive becomes a task, with a pause before each look.
 */
enum { NOW_SPINS = 1000 };
/* The same if ranks share a processor; only a few, because nobody checks for deaths meanwhile. */
enum { NOW_YIELDS = 8 };
/* With larger messages the copies take the time, and fetching ahead gains nothing. */
enum { AHEAD_BYTES = 12 * SEGMENT_LINE };
/* Of smaller messages, much is copied before the first lines that were taken ahead have arrived. */
enum { PUT_AHEAD_BYTES = 4 * 1024 };

/* ahead: whether to write by puts, which take the lines ahead. */
static inline bool send_whole(struct muster_comm *comm, const struct prepared *call, bool ahead)
{
    struct stream *s = &comm->messages->streams[call->peer];
    assert(call->kind == MUSTER_SEND && call->bytes <= MESSAGE_EAGER_BYTES);
    struct header header = {.bytes = call->bytes, .tag = call->tag};
    if (!s->out_ring || s->first_send ||
        !(ahead ? line_ring_write_puts(s->out_ring, &s->out, &header, call->in, call->bytes)
                : line_ring_write(s->out_ring, &s->out, &header, call->in, call->bytes))) {
        return false;
    }
    bell_wake(s->control);
    return true;
}

bool message_send_now(struct muster_comm *comm, const struct prepared *call)
{
    return send_whole(comm, call, false);
}

bool message_send_ahead(struct muster_comm *comm, const struct prepared *call)
{
    if (call->bytes >= PUT_AHEAD_BYTES && comm->messages->streams[call->peer].out.ahead) {
        return send_whole(comm, call, true);
    }
    if (!message_send_now(comm, call)) {
        return false;
    }
    const struct stream *s = &comm->messages->streams[call->peer];
    size_t two = 2 * (SEGMENT_LINE + call->bytes + SEGMENT_LINE - 1);
    if (comm->tuning->fetches && two <= AHEAD_BYTES) {
        line_ring_fetch(s->out_ring, &s->out, two);
    }
    return true;
}

/* Waits a little for the next header in this stream. */
static bool await_header(struct muster_comm *comm, struct stream *s)
{
    int turns = comm->oversubscribed ? NOW_YIELDS : NOW_SPINS;
    while (!line_ring_take_header(s->in_ring, &s->in, &s->inbound.header)) {
        if (--turns < 0) {
            return false;
        }
        if (comm->oversubscribed) {
            sched_yield();
        } else {
            line_pause();
        }
    }
    s->inbound.header_bytes = sizeof s->inbound.header;
    return true;
}

bool message_receive_now(struct muster_comm *comm, struct task *task)
{
    struct messages *m = comm->messages;
    int from = task->call.peer;
    struct stream *s = from == MUSTER_ANY_SOURCE ? NULL : &m->streams[from];
    if (!s || !s->in_ring || s->inbound.header_bytes > 0 || matching_is_busy(&m->matching) ||
        !await_header(comm, s)) {
        return false;
    }
    struct inbound *in = &s->inbound;
    size_t bytes = (size_t)in->header.bytes;
    if (!matching_fits(task, from, in->header.tag) || bytes > matching_room(task) ||
        !stream_has_whole(s)) {
        offer_take_address(s);
        return false;
    }
    task->transfer.message = stream_message(in, from);
    stream_take(comm, s, task->call.out);
    return true;
}
