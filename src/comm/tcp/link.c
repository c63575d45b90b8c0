/* Sockets to other hosts: their making and end, and signs of life.
 *
 * Over the life socket each process says 20 times a second that it is there and what it calls, and
 * when it closes the communicator. If it ends without that last word, its process has died; the end
 * of another socket says nothing, for it may overtake the word. Whoever closes because of a death
 * names the dead: ranks that would learn of it a little later must not take the closing for the
 * cause. Whoever frees it in good order says so: what it sent before may arrive later than that
 * word, for sockets know no order among each other, and is waited for until its socket ends. As TCP
 * holds back what follows a lost packet, for seconds when several are lost, the beats and the last
 * word go as datagrams, too (beat.c).
 *
 * Layer: comm; see link.h.
 */
#include "comm/tcp/link.h"

#include "comm/state/logbook.h"
#include "comm/state/peers.h"
#include "comm/tcp/beat.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LIFE_BEAT = 1,
    LIFE_CLOSED = 2,
    LIFE_LEFT = 3,
    LIFE_NOTHING = 4,
    PROMPT_FRAMES = 64, /* 2 KiB: see send_last */
    MAX_POLLS = COMM_MAX_RANKS * LINK_CHANNELS,
};

static struct link *link_new(void)
{
    struct link *link = calloc(1, sizeof *link);
    for (int c = 0; link && c < LINK_CHANNELS; c++) {
        link->channels[c].fd = -1;
    }
    if (link) {
        link->beat_fd = -1;
        pthread_mutex_init(&link->life_mutex, NULL);
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
            c->scratch = malloc(lane == LANE_SIDE ? SIDE_BYTES : link_capacity(comm));
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
    /* What is best depends on the network; only root may choose any. */
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
        return muster_fail(err, MUSTER_EPROTO, "rank %d connected where nothing was expected",
                           rank);
    }
    tune(fd);
    link->channels[channel].fd = fd;
    if (channel == LINK_LIFE) {
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
        comm->peers[r].link = NULL; /* first: a child forked at this instant looks into it */
        atomic_thread_fence(memory_order_release);
        for (int c = 0; c < LINK_CHANNELS; c++) {
            free(link->channels[c].scratch);
        }
        pthread_mutex_destroy(&link->life_mutex);
        free(link);
    }
}

/* ---- waiting ---- */

/* Only what somebody waits for: an early frame of another rank must not keep us awake. */
static int add_poll(struct pollfd *fds, int num, const struct channel *c)
{
    bool in = atomic_load_explicit(&c->wants_read, memory_order_relaxed);
    bool out = atomic_load_explicit(&c->wants_write, memory_order_relaxed) && !c->shut;
    if (c->fd < 0 || c->broken || (!in && !out)) {
        return num;
    }
    fds[num] =
        (struct pollfd){.fd = c->fd, .events = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0))};
    return num + 1;
}

static bool has_lost_lane(const struct link *link)
{
    bool lost = false;
    for (int lane = 0; lane < LANES; lane++) {
        lost = lost || link->channels[lane].broken || link->channels[lane].shut;
    }
    return lost;
}

static bool owes_word(const struct peer *peer)
{
    return peer->link && has_lost_lane(peer->link) && !peer->link->channels[LINK_LIFE].broken &&
           atomic_load_explicit(&peer->state, memory_order_relaxed) == MUSTER_PEER_ALIVE;
}

void link_ask(struct muster_comm *comm, int rank)
{
    if (owes_word(&comm->peers[rank])) {
        link_listen(comm, rank);
    }
}

/* As many as there is room for. */
static int add_polls(const struct muster_comm *comm, struct pollfd *fds, int num)
{
    for (int r = 0; r < comm->size && num + LINK_CHANNELS <= MAX_POLLS; r++) {
        for (int lane = 0; comm->peers[r].link && lane < LANES; lane++) {
            num = add_poll(fds, num, &comm->peers[r].link->channels[lane]);
        }
        if (owes_word(&comm->peers[r])) {
            fds[num++] = (struct pollfd){.fd = comm->peers[r].link->channels[LINK_LIFE].fd,
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
    (void)poll(fds, (nfds_t)num, timeout_ms);
    for (int i = 0; i < num_comms; i++) {
        for (int r = 0; r < comms[i]->size; r++) {
            link_ask(comms[i], r);
        }
    }
}

/* ---- life ---- */

static void set_state(struct peer *peer, enum muster_peer_state state)
{
    int alive = MUSTER_PEER_ALIVE;
    (void)atomic_compare_exchange_strong(&peer->state, &alive, (int)state);
}

/* A peer counts as silent once it has been heard: until then it may still be on its way here. Of
 * one whose lanes have ended only the last word counts. */
static void hear(struct peer *peer)
{
    peer->heard = true;
    peer->silent_beats = has_lost_lane(peer->link) ? peer->silent_beats : 0;
}

static uint32_t word_of(int kind, int culprit)
{
    return (uint32_t)kind << 16 | (uint16_t)culprit;
}

static void take_word(struct muster_comm *comm, struct peer *peer, uint32_t word)
{
    int kind = (int)(word >> 16);
    if (kind == LIFE_CLOSED || kind == LIFE_LEFT) {
        peers_believe(comm, (int16_t)(word & UINT16_MAX));
        atomic_store(&peer->link->left, kind == LIFE_LEFT);
        set_state(peer, MUSTER_PEER_CLOSED);
    }
}

static void take_frame(struct muster_comm *comm, struct peer *peer)
{
    struct link *link = peer->link;
    const struct life_frame *f = &link->incoming;
    hear(peer);
    link->last = *f;
    take_word(comm, peer, word_of(f->kind, f->culprit));
}

static void read_beats(struct muster_comm *comm, struct peer *peer)
{
    uint32_t word = 0;
    if (beat_receive(peer->link->beat_fd, comm->generation, (int)(peer - comm->peers), &word)) {
        hear(peer);
        take_word(comm, peer, word);
    }
}

/* The network's word, not that of the peer's kernel. */
static bool means_unreachable(int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN;
}

/* Reads what the life socket has; holds the mutex. */
static void read_life(struct muster_comm *comm, struct peer *peer)
{
    struct link *link = peer->link;
    char *to = (char *)&link->incoming;
    ssize_t n;
    while ((n = recv(link->channels[LINK_LIFE].fd, to + link->incoming_bytes,
                     sizeof link->incoming - link->incoming_bytes, MSG_DONTWAIT)) > 0) {
        link->incoming_bytes += (size_t)n;
        if (link->incoming_bytes == sizeof link->incoming) {
            link->incoming_bytes = 0;
            take_frame(comm, peer);
        }
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        bool unreachable = n < 0 && means_unreachable(errno);
        link->channels[LINK_LIFE].broken = true;
        read_beats(comm, peer); /* the last word goes twice, too */
        set_state(peer, unreachable ? MUSTER_PEER_SUSPECTED : MUSTER_PEER_DEAD);
    }
}

static void send_life(struct link *link, const struct life_frame *frames, size_t num)
{
    int fd = link->channels[LINK_LIFE].fd;
    size_t bytes = num * sizeof *frames;
    ssize_t n = link->full ? 0 : send(fd, frames, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    /* Half a frame would make nonsense of those that follow. */
    link->full = link->full || (n >= 0 && n < (ssize_t)bytes);
}

/* Linux acknowledges a little after 40 ms, and a segment of more than 1 KiB with another at once
 * (measured, Linux 6.18). muster_comm_free waits for that. */
static void send_last(struct link *link, const struct life_frame *frame)
{
    struct life_frame frames[PROMPT_FRAMES] = {*frame};
    for (int i = 1; i < PROMPT_FRAMES; i++) {
        frames[i].kind = LIFE_NOTHING;
    }
    send_life(link, frames, PROMPT_FRAMES);
    send_life(link, &frames[1], 1);
}

void link_listen(struct muster_comm *comm, int rank)
{
    struct peer *peer = &comm->peers[rank];
    pthread_mutex_lock(&peer->link->life_mutex);
    read_life(comm, peer);
    pthread_mutex_unlock(&peer->link->life_mutex);
}

void link_lost(struct muster_comm *comm, int rank, int error)
{
    link_listen(comm, rank);
    if (means_unreachable(error)) {
        set_state(&comm->peers[rank], MUSTER_PEER_SUSPECTED);
    }
}

void link_say_closed(struct muster_comm *comm, int culprit)
{
    struct life_frame closed = {.kind = comm->leaves ? LIFE_LEFT : LIFE_CLOSED,
                                .culprit = (int16_t)culprit};
    uint32_t word = word_of(closed.kind, culprit);
    atomic_store(&comm->last_word, word);
    for (int r = 0; r < comm->size; r++) {
        struct link *link = comm->peers[r].link;
        if (link && link->channels[LINK_LIFE].fd >= 0) {
            pthread_mutex_lock(&link->life_mutex);
            send_last(link, &closed);
            beat_send(link->beat_fd, comm->generation, comm->rank, word);
            pthread_mutex_unlock(&link->life_mutex);
        }
    }
}

bool link_still_brings(const struct muster_comm *comm, int rank, int lane)
{
    const struct link *link = comm->peers[rank].link;
    return link && atomic_load(&link->left) && !atomic_load(&link->dried) &&
           !atomic_load(&link->channels[lane].broken);
}

/* The kind of a call leaves this bit free. */
static const uint64_t call_has_ended = 0x80;

uint64_t link_last_call(struct muster_comm *comm, int rank, uint64_t *ret_shape,
                        uint64_t *ret_count, bool *ret_ended)
{
    struct link *link = comm->peers[rank].link;
    pthread_mutex_lock(&link->life_mutex);
    struct life_frame last = link->last;
    pthread_mutex_unlock(&link->life_mutex);
    *ret_shape = last.shape & ~call_has_ended;
    *ret_count = last.count;
    *ret_ended = last.shape & call_has_ended;
    return last.number;
}

/* One that has left beats no more: then what still comes from it shows that the way is open. */
static void note_reads(struct peer *peer)
{
    struct link *link = peer->link;
    uint32_t reads = atomic_load_explicit(&link->reads, memory_order_relaxed);
    if (atomic_load(&link->left) && reads != link->reads_before) {
        peer->silent_beats = 0;
    }
    link->reads_before = reads;
}

void link_beat(struct muster_comm *comm)
{
    struct life_frame beat = {.kind = LIFE_BEAT};
    beat.number = flight_newest(&comm->control->flight, &beat.shape, &beat.count);
    beat.shape |= flight_has_ended(&comm->control->flight, beat.number) ? call_has_ended : 0;
    for (int r = 0; r < comm->size; r++) {
        struct peer *peer = &comm->peers[r];
        if (!peer->link) {
            continue;
        }
        pthread_mutex_lock(&peer->link->life_mutex);
        peer->silent_beats += peer->heard;
        bool open = atomic_load(&comm->closed) == 0;
        uint32_t word = atomic_load(&comm->last_word);
        if (open) {
            send_life(peer->link, &beat, 1);
        }
        if (open || word != 0) {
            beat_send(peer->link->beat_fd, comm->generation, comm->rank, word);
        }
        read_life(comm, peer);
        read_beats(comm, peer);
        note_reads(peer);
        if (comm->silence_ms > 0 && peer->silent_beats * LIFE_BEAT_MS >= comm->silence_ms) {
            set_state(peer, MUSTER_PEER_SUSPECTED);
            atomic_store(&peer->link->dried, true);
        }
        pthread_mutex_unlock(&peer->link->life_mutex);
    }
}
