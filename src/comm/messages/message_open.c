/* What a communicator keeps for its messages: made with the host's memory, opened once it is known
 * whether ranks share processors, and freed with the communicator.
 *
 * Layer: comm. Memory: see streams.h. Thread: the one that makes or frees the communicator.
 */
#include "comm/messages/message.h"

#include "comm/messages/offer.h"
#include "comm/messages/streams.h"

#include <stdlib.h>

int message_init(struct muster_comm *comm, struct muster_err *err)
{
    struct messages *m = calloc(1, sizeof *m);
    if (m) {
        comm->messages = m;
        m->streams = calloc((size_t)comm->size, sizeof *m->streams);
    }
    if (!m || !m->streams) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for messages");
    }
    for (int l = 0; l < comm->local_size; l++) {
        struct stream *s = &m->streams[comm->locals[l]];
        s->in_ring = segment_stream(&comm->segment, l, comm->local_rank);
        s->out_ring = segment_stream(&comm->segment, comm->local_rank, l);
        s->control = segment_control(&comm->segment, l);
    }
    return 0;
}

void message_open(struct muster_comm *comm)
{
    /* Ranks that share a processor need a context switch for each full ring; otherwise both rings
     * of a pair must leave room in an L2 cache. */
    const struct schedule_tuning *t = comm->tuning;
    size_t bytes = comm->oversubscribed ? t->shared_ring_bytes : t->ring_bytes;
    for (int l = 0; l < comm->local_size; l++) {
        struct stream *s = &comm->messages->streams[comm->locals[l]];
        s->in = s->out = line_ring_start(bytes);
        s->out.ahead = t->puts_ahead && !comm->oversubscribed;
    }
    offer_open(comm);
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
