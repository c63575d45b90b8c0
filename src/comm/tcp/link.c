/* Makes and ends the sockets to other hosts, and waits for them. What they tell of life and death
 * is in remote_heartbeat.c.
 *
 * Layer: comm; see link.h.
 */
#include "comm/tcp/link.h"

#include "comm/tcp/beat.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_POLLS = MUSTER_MAX_RANKS * LINK_CHANNELS };

static struct link *link_new(void)
{
    struct link *link = calloc(1, sizeof *link);
    for (int c = 0; link && c < LINK_CHANNELS; c++) {
        link->channels[c].fd = -1;
    }
    if (link) {
        link->beat_fd = -1;
        pthread_mutex_init(&link->heartbeat_mutex, NULL);
    }
    return link;
}

int link_init(struct muster_comm *comm, struct muster_err *err)
{
    for (int r = 0; r < comm->size; r++) {
        struct peer *peer = &comm->peers[r];
        if (peer->local >= 0) {
            continue;
        }
        peer->link = link_new();
        for (int lane = 0; peer->link && lane < BOARD_LANES; lane++) {
            struct channel *c = &peer->link->channels[lane];
            c->scratch = malloc(link_scratch_bytes(lane));
            if (!c->scratch) {
                return muster_fail(err, MUSTER_ENOMEM, "no memory for a link");
            }
        }
        if (!peer->link) {
            return muster_fail(err, MUSTER_ENOMEM, "no memory for a link");
        }
    }
    return 0;
}

static void tune(int fd)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* The best congestion control depends on the network; only root may choose any. */
    const char *congestion = getenv("MUSTER_TCP_CONGESTION");
    if (congestion) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion,
                         (socklen_t)strlen(congestion));
    }
}

int link_adopt(struct muster_comm *comm, int fd, int rank, int channel, struct muster_err *err)
{
    struct link *link = rank >= 0 && rank < comm->size ? comm->peers[rank].link : NULL;
    if (!link || channel < 0 || channel >= LINK_CHANNELS || link->channels[channel].fd >= 0) {
        close(fd);
        return muster_fail(err, MUSTER_EPROTO, "rank %d opened a connection that was not expected",
                           rank);
    }
    assert(fd >= 0);
    tune(fd);
    link->channels[channel].fd = fd;
    if (channel == LINK_HEARTBEAT) {
        link->beat_fd = beat_open(fd);
    }
    return 0;
}

int link_find_missing(const struct muster_comm *comm)
{
    for (int r = 0; r < comm->size; r++) {
        const struct link *link = comm->peers[r].link;
        for (int c = 0; link && c < LINK_CHANNELS; c++) {
            if (link->channels[c].fd < 0) {
                return r;
            }
        }
    }
    return -1;
}

static void close_sockets(struct link *link)
{
    for (int c = 0; c < LINK_CHANNELS; c++) {
        fork_close(&link->channels[c].fd);
    }
    fork_close(&link->beat_fd);
}

void link_hang_up(struct muster_comm *comm)
{
    for (int r = 0; r < comm->size; r++) {
        if (comm->peers[r].link) {
            close_sockets(comm->peers[r].link);
        }
    }
}

void link_free(struct muster_comm *comm)
{
    for (int r = 0; comm->peers && r < comm->size; r++) {
        struct link *link = comm->peers[r].link;
        if (!link) {
            continue;
        }
        close_sockets(link);
        comm->peers[r].link = NULL; /* cleared first: a child that is forked at this instant
                                       reads it */
        atomic_thread_fence(memory_order_release);
        for (int c = 0; c < LINK_CHANNELS; c++) {
            free(link->channels[c].scratch);
        }
        pthread_mutex_destroy(&link->heartbeat_mutex);
        free(link);
    }
}

/* ---- waiting ---- */

/* Polls only the channels that somebody waits for: an early frame of another rank must not keep
 * this thread awake. */
static int add_poll(struct pollfd *fds, int num, const struct channel *c)
{
    bool in = atomic_load_explicit(&c->wants_read, memory_order_relaxed);
    bool out = atomic_load_explicit(&c->wants_write, memory_order_relaxed) && channel_is_open(c);
    if (c->fd < 0 || channel_has_ended(c) || (!in && !out)) {
        return num;
    }
    fds[num] =
        (struct pollfd){.fd = c->fd, .events = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0))};
    return num + 1;
}

static bool owes_word(const struct peer *peer)
{
    return peer->link && link_has_lost_lane(peer->link) &&
           !channel_has_ended(&peer->link->channels[LINK_HEARTBEAT]) &&
           atomic_load_explicit(&peer->state, memory_order_relaxed) == MUSTER_PEER_ALIVE;
}

void link_ask(struct muster_comm *comm, int rank)
{
    if (owes_word(&comm->peers[rank])) {
        link_listen(comm, rank);
    }
}

/* Adds as many channels as there is room for. */
static int add_polls(const struct muster_comm *comm, struct pollfd *fds, int num)
{
    for (int r = 0; r < comm->size && num + LINK_CHANNELS <= MAX_POLLS; r++) {
        for (int lane = 0; comm->peers[r].link && lane < LANES; lane++) {
            num = add_poll(fds, num, &comm->peers[r].link->channels[lane]);
        }
        if (owes_word(&comm->peers[r])) {
            fds[num++] = (struct pollfd){.fd = comm->peers[r].link->channels[LINK_HEARTBEAT].fd,
                                         .events = POLLIN};
        }
    }
    return num;
}

void link_wait(struct muster_comm *const *comms, int num_comms, int timeout_ms)
{
    struct pollfd fds[MAX_POLLS];
    int num = 0;
    for (int i = 0; i < num_comms; i++) {
        num = add_polls(comms[i], fds, num);
    }
    assert(num <= MAX_POLLS);
    (void)poll(fds, (nfds_t)num, timeout_ms);
    for (int i = 0; i < num_comms; i++) {
        for (int r = 0; r < comms[i]->size; r++) {
            link_ask(comms[i], r);
        }
    }
}
