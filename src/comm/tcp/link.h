/* Sockets to the ranks on other hosts: one per lane, so that a call waits behind nothing but its
 * own kind, and one for signs of life.
 *
 * On the lanes of collectives run frames: a header that names the call, then one round's piece. A
 * round is read by the call that it belongs to, from the socket straight to its place; what comes
 * early stays in the kernel and slows its sender down. On the lane of messages run plain bytes
 * (message.c).
 *
 * Layer: comm. Memory: comm->peers[r].link. Thread: each lane's socket its lane's holder, the
 * heartbeat socket under heartbeat_mutex.
 */
#pragma once

#include "comm/state/state.h"
#include "comm/tcp/ending.h"

enum {
    LINK_PIECE_BYTES = 240 * 1024, /* to each peer in a round, where that is our choice */
    LINK_HEARTBEAT = LANES,        /* channel of the signs of life */
    LINK_CHANNELS = LANES + 1,
    LINK_PENDING = 4, /* frames that the socket has not taken: at most those of 3 rounds */
};

struct frame_header {
    uint32_t magic;
    uint32_t bytes;
    uint64_t generation;
    uint64_t flag; /* round of the call, and signature: segment_flag() */
    uint64_t number;
    uint64_t shape; /* of a beat also whether it is over: remote_heartbeat.c */
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
    size_t received;            /* of it and its piece */
    uint64_t call;              /* the last one of which a round was read */
    uint32_t rounds;            /* of it, read */
    char *scratch;              /* a piece to be reduced: link_scratch_bytes() */
    _Atomic bool wants_read;    /* someone waits for what is to come */
    _Atomic bool wants_write;
};

/* What goes over the heartbeat socket, 20 times a second and when a communicator is closed. */
struct heartbeat_frame {
    uint16_t kind;
    int16_t failed_rank; /* the rank that closes says so: peers_failed_rank() */
    uint32_t zero;
    uint64_t number; /* the last collective that the sender entered; 0: none */
    uint64_t shape;
    uint64_t count;
};

struct link {
    struct channel channels[LINK_CHANNELS];
    int beat_fd;                     /* datagrams, or -1: the heartbeat socket must do */
    pthread_mutex_t heartbeat_mutex; /* guards the rest, and the heartbeat channel */
    struct heartbeat_frame incoming;
    size_t incoming_bytes;
    struct heartbeat_frame last; /* complete */
    _Atomic int state;           /* enum link_state */
    _Atomic uint32_t reads;      /* that brought something, on any channel */
    uint32_t reads_before;
};

static inline bool channel_has_ended(const struct channel *c)
{
    return atomic_load(&c->state) == CHANNEL_ENDED;
}
/* What is written now may arrive. */
static inline bool channel_is_open(const struct channel *c)
{
    return atomic_load(&c->state) == CHANNEL_OPEN;
}

/* Something cannot be written to it any more, or read from it. */
static inline bool link_has_lost_lane(const struct link *link)
{
    bool lost = false;
    for (int lane = 0; lane < LANES; lane++) {
        lost = lost || !channel_is_open(&link->channels[lane]);
    }
    return lost;
}

/* ---- link.c: sockets ---- */

/* Bytes of a round between hosts, of the main lane. */
static inline size_t link_capacity(const struct muster_comm *comm)
{
    size_t wire = (size_t)comm->hosts->hosts * LINK_PIECE_BYTES;
    return wire > comm->capacity ? wire : comm->capacity;
}

/* One piece of each peer, however many there are: schedule_exchange's reduce_bytes. */
static inline size_t link_scratch_bytes(int lane)
{
    return lane == LANE_SIDE ? SIDE_BYTES : LINK_PIECE_BYTES;
}

/* While forming: room for the links, sockets as they come (taken over, also on failure), then a
 * rank of which some are missing; -1: all are there. */
int link_init(struct muster_comm *comm, struct muster_err *err);
/* Called in a forked child. */
void link_hang_up(struct muster_comm *comm);
int link_adopt(struct muster_comm *comm, int fd, int rank, int channel, struct muster_err *err);
int link_find_missing(const struct muster_comm *comm);
void link_free(struct muster_comm *comm);
/* The last that is sent arrives (leave.c). Before link_free, while the heart beats. */
void link_leave(struct muster_comm *comm);

/* Sleeps until a socket of one of them can move, at most timeout_ms. */
void link_wait(struct muster_comm *const *comms, int num_comms, int timeout_ms);
static inline void link_note_read(struct link *link)
{
    (void)atomic_fetch_add_explicit(&link->reads, 1, memory_order_relaxed);
}

/* ---- remote_heartbeat.c ---- */

/* The last word to the others: whether this rank leaves in good order, and peers_failed_rank(). */
void link_say_closed(struct muster_comm *comm, int failed_rank);
/* Whether that rank has left, but not everything that it sent on this lane has been read. */
bool link_still_brings(const struct muster_comm *comm, int rank, int lane);
/* Called on the heartbeat thread. */
void link_beat(struct muster_comm *comm);
/* Reads what that rank's heartbeat socket has; link_ask: if its lanes have ended and it is not
 * known why. */
void link_listen(struct muster_comm *comm, int rank);
void link_ask(struct muster_comm *comm, int rank);
/* A lane of that rank ended, or failed with that error. What became of the rank its heartbeat
 * socket says, perhaps later; that it cannot be reached, the error. */
void link_lost(struct muster_comm *comm, int rank, int error);

/* The last collective that a rank on another host is known to have entered, and whether it has left
 * it, up to 50 ms ago. */
uint64_t link_last_call(struct muster_comm *comm, int rank, uint64_t *ret_shape,
                        uint64_t *ret_count, bool *ret_ended);

/* ---- stream.c: messages ---- */

/* Writes as many bytes as the socket takes; none when the link is lost. Nothing is written to a
 * rank that has left: it would reset the connection, and lose what still comes. */
int64_t link_stream_write(struct muster_comm *comm, int to, const void *data, size_t bytes);
int64_t link_stream_read(struct muster_comm *comm, int from, void *data, size_t bytes);

/* ---- frames.c: rounds of collectives ---- */

/* Sends this round's pieces to those of the team on other hosts, as far as the sockets take them
 * now. */
void link_publish(struct muster_comm *comm, struct task *task, struct exchange *x, size_t round,
                  const char *source);
/* 1: all of this round's pieces are here and ours have been handed to the kernel.
 * MUSTER_EMISMATCH, without words: the rank that the task waits for calls something else. */
int link_arrived(struct muster_comm *comm, struct task *task, struct exchange *x, size_t round,
                 struct muster_err *err);
/* The address of this round's piece from that rank of the team; NULL: it was read to its place. */
char *link_piece(struct muster_comm *comm, const struct task *task, const struct exchange *x,
                 size_t round, int from);
/* Nothing of this call has come from that rank on this lane, nor will. The caller holds the lane.
 */
bool link_is_dry(const struct muster_comm *comm, int rank, int lane, uint64_t number);
/* The number of the call of which that rank's last header on this lane was; 0: none came. The
 * caller holds the lane. */
uint64_t link_lane_call(const struct muster_comm *comm, int rank, int lane, uint64_t *ret_shape,
                        uint64_t *ret_count);
/* What that rank said it calls under this number. 1: known. The caller holds this lane. */
int link_record(const struct muster_comm *comm, int rank, int lane, uint64_t number,
                uint64_t *ret_shape, uint64_t *ret_count);
