/* The stream of messages to and from ranks on other hosts. Layer: comm; see link.h. */
#include "comm/tcp/link.h"

#include <errno.h>
#include <sys/socket.h>

static bool is_full_or_empty(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

int64_t link_stream_write(struct muster_comm *comm, int to, const void *data, size_t bytes)
{
    struct channel *c = &comm->peers[to].link->channels[LANE_MESSAGES];
    if (!channel_is_open(c) || atomic_load(&comm->peers[to].link->state) != LINK_SPEAKS) {
        return 0; /* failure_check tells this to the tasks that wait for this rank */
    }
    ssize_t n = send(c->fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    atomic_store_explicit(&c->wants_write, n < (ssize_t)bytes, memory_order_relaxed);
    if (n < 0 && !is_full_or_empty(n)) {
        ending_channel(&c->state, CHANNEL_SHUT);
        link_lost(comm, to, errno);
    }
    return n < 0 ? 0 : n;
}

int64_t link_stream_read(struct muster_comm *comm, int from, void *data, size_t bytes)
{
    struct channel *c = &comm->peers[from].link->channels[LANE_MESSAGES];
    if (channel_has_ended(c)) {
        link_ask(comm, from);
    }
    if (channel_has_ended(c) || bytes == 0) {
        return 0;
    }
    ssize_t n = recv(c->fd, data, bytes, MSG_DONTWAIT);
    atomic_store_explicit(&c->wants_read, n < 0, memory_order_relaxed);
    if (n > 0) {
        link_note_read(comm->peers[from].link);
    } else if (!is_full_or_empty(n)) {
        ending_channel(&c->state, CHANNEL_ENDED);
        link_lost(comm, from, n < 0 ? errno : 0);
    }
    return n < 0 ? 0 : n;
}
