/* Heartbeats between hosts, and the goodbye message.
 *
 * Over the heartbeat socket each process reports 20 times a second that it lives and which call it
 * is in, and sends a goodbye when it closes the communicator. If the socket ends without a goodbye,
 * the process has died; the end of another socket proves nothing, because it may overtake the
 * goodbye. A rank that closes because of a death names the dead rank: ranks that would learn of the
 * death a little later must not take the closing for the cause. A rank that frees the communicator
 * in good order says so: its earlier data may arrive after the goodbye, because different sockets
 * have no common order, and is waited for until its socket ends. TCP holds back all data after a
 * lost packet, for seconds when several are lost; therefore the beats and the goodbye are also sent
 * as datagrams (beat.c).
 *
 * Layer: comm; see link.h. Thread: the heartbeat's, or any; under heartbeat_mutex.
 */
#include "comm/state/call_log.h"
#include "comm/state/peers.h"
#include "comm/tcp/beat.h"
#include "comm/tcp/link.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

enum {
    HEARTBEAT_BEAT = 1,
    HEARTBEAT_CLOSED = 2,
    HEARTBEAT_LEFT = 3,
    HEARTBEAT_NOTHING = 4,
    HEARTBEAT_TRACED = 5, /* a heartbeat of a rank that a debugger may stop at any time */
    PROMPT_FRAMES = 64,   /* 2 KiB: see send_last */
    /* For a rank that has left, only its kernel answers. It sends a lost segment again after twice
     * the time: at 0.2, 0.6, 1.4, 3 and 6.2 s. */
    PATIENCE_WITH_KERNELS = 10,
};

static void set_state(struct peer *peer, enum muster_peer_state state)
{
    int alive = MUSTER_PEER_ALIVE;
    (void)atomic_compare_exchange_strong(&peer->state, &alive, (int)state);
}

/* A peer can count as silent only after it has been heard once: before that it may still be
 * starting. If its lanes have ended, only the last word counts. */
static void hear(struct peer *peer)
{
    peer->heard = true;
    peer->silent_beats = link_has_lost_lane(peer->link) ? peer->silent_beats : 0;
}

static uint32_t word_of(int kind, int failed_rank)
{
    return (uint32_t)kind << 16 | (uint16_t)failed_rank;
}

static void take_word(struct muster_comm *comm, struct peer *peer, uint32_t word)
{
    int kind = (int)(word >> 16);
    if (kind == HEARTBEAT_BEAT || kind == HEARTBEAT_TRACED) {
        atomic_store(&peer->traced, kind == HEARTBEAT_TRACED);
    }
    if (kind == HEARTBEAT_CLOSED || kind == HEARTBEAT_LEFT) {
        peers_believe(comm, (int16_t)(word & UINT16_MAX));
        if (kind == HEARTBEAT_LEFT && atomic_load(&peer->link->state) == LINK_SPEAKS) {
            ending_link(&peer->link->state, LINK_LEFT);
            peer->silent_beats = 0;
        }
        set_state(peer, MUSTER_PEER_CLOSED);
    }
}

static void take_frame(struct muster_comm *comm, struct peer *peer)
{
    struct link *link = peer->link;
    const struct heartbeat_frame *f = &link->incoming;
    hear(peer);
    link->last = *f;
    take_word(comm, peer, word_of(f->kind, f->failed_rank));
}

static void read_beats(struct muster_comm *comm, struct peer *peer)
{
    uint32_t word = 0;
    if (beat_receive(peer->link->beat_fd, comm->generation, (int)(peer - comm->peers), &word)) {
        hear(peer);
        take_word(comm, peer, word);
    }
}

/* Whether the error comes from the network, and not from the peer's kernel. */
static bool means_unreachable(int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN;
}

/* Reads what has arrived on the heartbeat socket. The caller holds the mutex. */
static void read_heartbeat(struct muster_comm *comm, struct peer *peer)
{
    struct link *link = peer->link;
    char *to = (char *)&link->incoming;
    ssize_t n;
    if (channel_has_ended(&link->channels[LINK_HEARTBEAT])) {
        return;
    }
    while ((n = recv(link->channels[LINK_HEARTBEAT].fd, to + link->incoming_bytes,
                     sizeof link->incoming - link->incoming_bytes, MSG_DONTWAIT)) > 0) {
        link->incoming_bytes += (size_t)n;
        assert(link->incoming_bytes <= sizeof link->incoming);
        if (link->incoming_bytes == sizeof link->incoming) {
            link->incoming_bytes = 0;
            take_frame(comm, peer);
        }
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        bool unreachable = n < 0 && means_unreachable(errno);
        ending_channel(&link->channels[LINK_HEARTBEAT].state, CHANNEL_ENDED);
        read_beats(comm, peer); /* the last word is sent as a datagram, too */
        set_state(peer, unreachable ? MUSTER_PEER_SUSPECTED : MUSTER_PEER_DEAD);
    }
}

static void send_heartbeat(struct link *link, const struct heartbeat_frame *frames, size_t num)
{
    struct channel *c = &link->channels[LINK_HEARTBEAT];
    size_t bytes = num * sizeof *frames;
    if (!channel_is_open(c)) {
        return;
    }
    ssize_t n = send(c->fd, frames, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0 && n < (ssize_t)bytes) { /* half a frame would make the frames after it unreadable */
        ending_channel(&c->state, CHANNEL_SHUT);
    }
}

/* Linux acknowledges a small segment a little after 40 ms, but a segment of more than 1 KiB that is
 * followed by another at once (measured, Linux 6.18). muster_comm_free waits for the
 * acknowledgement. */
static void send_last(struct link *link, const struct heartbeat_frame *frame)
{
    struct heartbeat_frame frames[PROMPT_FRAMES] = {*frame};
    for (int i = 1; i < PROMPT_FRAMES; i++) {
        frames[i].kind = HEARTBEAT_NOTHING;
    }
    send_heartbeat(link, frames, PROMPT_FRAMES);
    send_heartbeat(link, &frames[1], 1);
}

void link_listen(struct muster_comm *comm, int rank)
{
    struct peer *peer = &comm->peers[rank];
    pthread_mutex_lock(&peer->link->heartbeat_mutex);
    read_heartbeat(comm, peer);
    pthread_mutex_unlock(&peer->link->heartbeat_mutex);
}

void link_lost(struct muster_comm *comm, int rank, int error)
{
    link_listen(comm, rank);
    if (means_unreachable(error)) {
        set_state(&comm->peers[rank], MUSTER_PEER_SUSPECTED);
    }
}

void link_say_closed(struct muster_comm *comm, int failed_rank)
{
    struct heartbeat_frame closed = {.kind = phase_is_leaving(&comm->life) ? HEARTBEAT_LEFT
                                                                           : HEARTBEAT_CLOSED,
                                     .failed_rank = (int16_t)failed_rank};
    uint32_t word = word_of(closed.kind, failed_rank);
    assert(word != 0 && atomic_load(&comm->last_word) == 0 && "it is the last");
    atomic_store(&comm->last_word, word);
    for (int r = 0; r < comm->size; r++) {
        struct link *link = comm->peers[r].link;
        if (link && link->channels[LINK_HEARTBEAT].fd >= 0) {
            pthread_mutex_lock(&link->heartbeat_mutex);
            send_last(link, &closed);
            beat_send(link->beat_fd, comm->generation, comm->rank, word);
            pthread_mutex_unlock(&link->heartbeat_mutex);
        }
    }
}

bool link_still_brings(const struct muster_comm *comm, int rank, int lane)
{
    const struct link *link = comm->peers[rank].link;
    return link && atomic_load(&link->state) == LINK_LEFT &&
           !channel_has_ended(&link->channels[lane]);
}

/* The kind of a call leaves this bit free. */
static const uint64_t call_has_ended = 0x80;

uint64_t link_last_call(struct muster_comm *comm, int rank, uint64_t *ret_shape,
                        uint64_t *ret_count, bool *ret_ended)
{
    struct link *link = comm->peers[rank].link;
    pthread_mutex_lock(&link->heartbeat_mutex);
    struct heartbeat_frame last = link->last;
    pthread_mutex_unlock(&link->heartbeat_mutex);
    *ret_shape = last.shape & ~call_has_ended;
    *ret_count = last.count;
    *ret_ended = last.shape & call_has_ended;
    return last.number;
}

/* A rank that has left sends no heartbeats; data that still comes from it shows that the connection
 * works. */
static void note_reads(struct peer *peer)
{
    struct link *link = peer->link;
    uint32_t reads = atomic_load_explicit(&link->reads, memory_order_relaxed);
    if (atomic_load(&link->state) == LINK_LEFT && reads != link->reads_before) {
        peer->silent_beats = 0;
    }
    link->reads_before = reads;
}

/* While a debugger holds the rank, only its kernel's answer counts. */
static bool is_silent(const struct muster_comm *comm, const struct peer *peer)
{
    bool left = atomic_load(&peer->link->state) == LINK_LEFT;
    int64_t limit_ms = comm->heartbeat_timeout_ms * (left ? PATIENCE_WITH_KERNELS : 1);
    return limit_ms > 0 && !atomic_load(&peer->traced) &&
           peer->silent_beats * HEARTBEAT_MS >= limit_ms;
}

void link_beat(struct muster_comm *comm)
{
    bool traced = comm->hosts->hosts > 1 && peers_this_thread_is_traced();
    struct heartbeat_frame beat = {.kind = traced ? HEARTBEAT_TRACED : HEARTBEAT_BEAT};
    beat.number = flight_newest(&comm->control->flight, &beat.shape, &beat.count);
    beat.shape |= flight_has_ended(&comm->control->flight, beat.number) ? call_has_ended : 0;
    for (int r = 0; r < comm->size; r++) {
        struct peer *peer = &comm->peers[r];
        if (!peer->link) {
            continue;
        }
        pthread_mutex_lock(&peer->link->heartbeat_mutex);
        peer->silent_beats += peer->heard;
        bool open = phase_code(&comm->life) == 0;
        uint32_t word = atomic_load(&comm->last_word);
        if (open) {
            send_heartbeat(peer->link, &beat, 1);
        }
        if (open || word != 0) {
            beat_send(peer->link->beat_fd, comm->generation, comm->rank, word);
        }
        read_heartbeat(comm, peer);
        read_beats(comm, peer);
        note_reads(peer);
        if (is_silent(comm, peer)) {
            set_state(peer, MUSTER_PEER_SUSPECTED);
            ending_link(&peer->link->state, LINK_DRIED);
        }
        pthread_mutex_unlock(&peer->link->heartbeat_mutex);
    }
}
