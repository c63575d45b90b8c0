/* Sockets to the ranks on other hosts: one per lane, so that a call waits only behind calls of its
 * own kind, and one for heartbeats.
 *
 * The lanes of collectives carry frames: a header that names the call, then one round's piece. A
 * round is read by the call that it belongs to, from the socket straight to its place; data that
 * comes early stays in the kernel and slows its sender down. The lane of messages carries plain
 * bytes (message.c).
 *
 * Layer: comm. Memory: comm->peers[r].link. Thread: each lane's socket its lane's holder, the
 * heartbeat socket under heartbeat_mutex.
 */
#pragma once

#include "comm/state/state.h"
#include "comm/tcp/ending.h"

enum {
    LINK_PIECE_BYTES = 240 * 1024, /* bytes to each peer in a round, where the library may choose
                                      them */
    LINK_HEARTBEAT = LANES,        /* the channel of the heartbeats */
    LINK_CHANNELS = LANES + 1,
    LINK_PENDING = 4, /* frames that the socket has not taken yet: at most those of 3 rounds */
};

struct frame_header {
    uint32_t magic;
    uint32_t bytes;
    uint64_t generation;
    uint64_t flag; /* round of the call, and signature: segment_flag() */
    uint64_t number;
    uint64_t shape; /* in a heartbeat also whether the call has ended: remote_heartbeat.c */
    uint64_t count;
};

struct outgoing {
    struct frame_header header;
    const char *data;
    size_t sent; /* of header and data */
};

struct channel {
    int fd;
    _Atomic int state; /* enum channel_state */
    struct outgoing pending[LINK_PENDING];
    unsigned first; /* pending: first … first + num - 1, modulo LINK_PENDING */
    unsigned num;
    struct frame_header header; /* being read, or read last */
    size_t received;            /* bytes of the header and its piece */
    uint64_t call;              /* the last call of which a round was read */
    uint32_t rounds;            /* rounds of it that were read */
    char *scratch;              /* for a piece to be reduced: link_scratch_bytes() */
    _Atomic bool wants_read;    /* someone waits for data from it */
    _Atomic bool wants_write;
};

/* What is sent over the heartbeat socket, 20 times a second and when a communicator is closed. */
struct heartbeat_frame {
    uint16_t kind;
    int16_t failed_rank; /* named by a rank that closes: peers_failed_rank() */
    uint32_t zero;
    uint64_t number; /* the last collective that the sender entered; 0: none */
    uint64_t shape;
    uint64_t count;
};

struct link {
    struct channel channels[LINK_CHANNELS];
    int beat_fd;                     /* for datagrams; -1: only the heartbeat socket is used */
    pthread_mutex_t heartbeat_mutex; /* guards the other fields, and the heartbeat channel */
    struct heartbeat_frame incoming;
    size_t incoming_bytes;
    struct heartbeat_frame last; /* the last complete one */
    _Atomic int state;           /* enum link_state */
    _Atomic uint32_t reads;      /* reads that brought something, on any channel */
    uint32_t reads_before;
};

static inline bool channel_has_ended(const struct channel *c)
{
    return atomic_load(&c->state) == CHANNEL_ENDED;
}
/* Whether data that is written now may arrive. */
static inline bool channel_is_open(const struct channel *c)
{
    return atomic_load(&c->state) == CHANNEL_OPEN;
}

/* Whether a lane cannot be written to any more, or not read from. */
static inline bool link_has_lost_lane(const struct link *link)
{
    bool lost = false;
    for (int lane = 0; lane < LANES; lane++) {
        lost = lost || !channel_is_open(&link->channels[lane]);
    }
    return lost;
}

/* ---- link.c: sockets ---- */

/* Returns the bytes of a round between hosts, in the main lane. */
static inline size_t link_capacity(const struct muster_comm *comm)
{
    size_t wire = (size_t)comm->hosts->hosts * LINK_PIECE_BYTES;
    return wire > comm->capacity ? wire : comm->capacity;
}

/* Returns the bytes of one piece of each peer, however many peers there are: schedule_exchange's
 * reduce_bytes. */
static inline size_t link_scratch_bytes(int lane)
{
    return lane == LANE_SIDE ? SIDE_BYTES : LINK_PIECE_BYTES;
}

/* Called while forming: link_init makes room for the links, link_adopt takes a socket that has come
 * (and owns it, also on failure), link_find_missing returns a rank of which sockets are missing, or
 * -1 if all have come. */
int link_init(struct muster_comm *comm, struct muster_err *err);
/* Called in a forked child. */
void link_hang_up(struct muster_comm *comm);
int link_adopt(struct muster_comm *comm, int fd, int rank, int channel, struct muster_err *err);
int link_find_missing(const struct muster_comm *comm);
void link_free(struct muster_comm *comm);
/* Makes sure that the last data that was sent arrives (leave.c). Called before link_free, while the
 * heartbeat runs. */
void link_leave(struct muster_comm *comm);

/* Sleeps until a socket of one of them can move, at most timeout_ms. */
void link_wait(struct muster_comm *const *comms, int num_comms, int timeout_ms);
static inline void link_note_read(struct link *link)
{
    (void)atomic_fetch_add_explicit(&link->reads, 1, memory_order_relaxed);
}

/* ---- remote_heartbeat.c ---- */

/* Sends the last word to the others: whether this rank leaves in good order, and
 * peers_failed_rank(). */
void link_say_closed(struct muster_comm *comm, int failed_rank);
/* Whether that rank has left, but not everything that it sent on this lane has been read. */
bool link_still_brings(const struct muster_comm *comm, int rank, int lane);
/* Called on the heartbeat thread. */
void link_beat(struct muster_comm *comm);
/* Reads what has arrived on that rank's heartbeat socket. link_ask does so only if a lane of that
 * rank has ended and the reason is not known. */
void link_listen(struct muster_comm *comm, int rank);
void link_ask(struct muster_comm *comm, int rank);
/* Called when a lane of that rank ended, or failed with that error. The heartbeat socket tells what
 * happened to the rank, perhaps later; the error tells whether it cannot be reached. */
void link_lost(struct muster_comm *comm, int rank, int error);

/* Returns the last collective that a rank on another host is known to have entered, and whether it
 * has left it. The answer may be 50 ms old. */
uint64_t link_last_call(struct muster_comm *comm, int rank, uint64_t *ret_shape,
                        uint64_t *ret_count, bool *ret_ended);

/* ---- stream.c: messages ---- */

/* Writes as many bytes as the socket takes; none if the link is lost. Nothing is written to a rank
 * that has left: this would reset the connection, and what still comes would be lost. */
int64_t link_stream_write(struct muster_comm *comm, int to, const void *data, size_t bytes);
int64_t link_stream_read(struct muster_comm *comm, int from, void *data, size_t bytes);

/* ---- frames.c: rounds of collectives ---- */

/* Sends this round's pieces to the team's ranks on other hosts, as far as the sockets take them
 * now. */
void link_publish(struct muster_comm *comm, struct task *task, struct exchange *x, size_t round,
                  const char *source);
/* Returns 1 when all of this round's pieces have arrived and ours have been given to the kernel.
 * MUSTER_EMISMATCH, without a text: the rank that the task waits for calls something else. */
int link_arrived(struct muster_comm *comm, struct task *task, struct exchange *x, size_t round,
                 struct muster_err *err);
/* Returns the address of this round's piece from that rank of the team; NULL: it was read directly
 * to its place. */
char *link_piece(struct muster_comm *comm, const struct task *task, const struct exchange *x,
                 size_t round, int from);
/* Whether nothing of this call has come from that rank on this lane, and nothing will. The caller
 * holds the lane. */
bool link_is_dry(const struct muster_comm *comm, int rank, int lane, uint64_t number);
/* Returns the number of the call in that rank's last header on this lane; 0: no header has come.
 * The caller holds the lane. */
uint64_t link_lane_call(const struct muster_comm *comm, int rank, int lane, uint64_t *ret_shape,
                        uint64_t *ret_count);
/* Reads what that rank calls under this number. Returns 1 if it is known. The caller holds this
 * lane. */
int link_record(const struct muster_comm *comm, int rank, int lane, uint64_t number,
                uint64_t *ret_shape, uint64_t *ret_count);
