/* The shared memory of the ranks of one communicator on one host: an anonymous file (memfd), so
 * that it ends with its last process.
 *
 *     control page of each rank | boards | owner slots | streams | rooted slots | memory of
 *     muster_comm_alloc …
 *
 * Every word has one writer, but for the doorbells. A rank is named here by its index on the host.
 *
 * Layer: comm. Memory: struct segment owns the mapping and the descriptor. Thread: any; the words
 * are atomic, the data between them belongs to whom the words say.
 */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/futex.h>

#include <muster/err.h>

#include "core/flight.h"

enum {
    SEGMENT_LINE = 64,
    SEGMENT_PAGE = 4096,
    LANE_MAIN = 0, /* calls in order */
    LANE_SIDE = 1, /* small all-gathers, which overtake the calls of the main lane */
    BOARD_LANES = 2,
    LANE_MESSAGES = 2, /* sends and receives, each independent */
    LANES = 3,
    BOARD_SLOTS = 4, /* a rank publishes at most one round ahead: see schedule/exchange.h */
    BOARD_BYTES = 128 * 1024,
    SIDE_BYTES = 4096,
    OWNER_SLOTS = 2, /* more would drive the user's data out of the L2 cache */
    OWNER_BYTES = 64 * 1024,
    STREAM_BYTES = 256 * 1024, /* both ends may use less of it: shm/line_ring.h */
    SECOND_RING_BYTES = STREAM_BYTES / 4 + 4 * SEGMENT_LINE,
    ROOTED_SLOTS = 32, /* a rank may be this many rooted calls ahead: algorithm/rooted.c */
    ROOTED_BYTES = 4096,
    CPU_WORDS = 16, /* 1024 processors */
};

/* When the thread with the id in `owner` ends, in whatever way, the kernel writes FUTEX_OWNER_DIED
 * into it (see heartbeat.h). node is that thread's robust list entry. */
struct heartbeat_word {
    struct robust_list node;
    _Atomic uint32_t owner;
    _Atomic uint32_t beats;
};

struct control {
    alignas(SEGMENT_LINE) struct heartbeat_word heartbeat;
    alignas(SEGMENT_LINE) _Atomic uint32_t bell; /* futex; any rank may ring it */
    _Atomic uint32_t sleepers;
    _Atomic uint32_t closed;                        /* 1: the communicator was freed or aborted */
    _Atomic int32_t failed_rank;                    /* written before closed: peers_failed_rank() */
    alignas(SEGMENT_LINE) _Atomic uint32_t writing; /* 1: writes into the memory of others:
                                                       quiesce.c */
    alignas(SEGMENT_LINE) _Atomic int32_t pid;      /* 0 until the rank has mapped the segment */
    _Atomic uint64_t processors[CPU_WORDS];         /* on which it may run; written before pid */
    _Atomic uint32_t processor;                     /* enum schedule_processor; written before
                                                       pid */
    struct flight flight;                           /* the calls that it has made */
};

/* One slot of a board. flag = round number << 32 | signature, written after the data. Small data
 * that all ranks read lies beside the flag, so that a reader fetches one line instead of two, one
 * after the other. */
struct board {
    alignas(SEGMENT_LINE) _Atomic uint64_t flag;
    char little[SEGMENT_LINE - sizeof(uint64_t)];
    char data[];
};

static inline uint64_t segment_flag(uint32_t round, uint32_t signature)
{
    return (uint64_t)round << 32 | signature;
}

/* The boards of a rank: BOARD_SLOTS for each lane, one lane after the other. */
enum {
    BOARD_STRIDE = sizeof(struct board) + BOARD_BYTES,
    SIDE_STRIDE = sizeof(struct board) + SIDE_BYTES,
    BOARDS_BYTES = (BOARD_SLOTS * (BOARD_STRIDE + SIDE_STRIDE) + SEGMENT_PAGE - 1) / SEGMENT_PAGE *
                   SEGMENT_PAGE,
};

/* Returns where data for all ranks is put. */
static inline char *board_blob(struct board *board, size_t bytes)
{
    return bytes <= sizeof board->little ? board->little : board->data;
}

/* A slot between two ranks. In owner-reduce the contributor fills it, and the owner of the part
 * answers in place; in a pairwise exchange the rank that has read it fills it next. The data has
 * the same offset in its line as in the writer's buffer, so that no access on the way straddles two
 * lines, unless the ranks' buffers have different offsets (measured, AMD Zen 3: a quarter of the
 * time). */
struct owner_slot {
    alignas(SEGMENT_LINE) _Atomic uint64_t asked;
    uint32_t phase; /* offset of the data in its line; written before asked */
    alignas(SEGMENT_LINE) _Atomic uint64_t answered;
    alignas(SEGMENT_LINE) char data[SEGMENT_LINE + OWNER_BYTES];
};

static inline uint32_t segment_phase(const void *buffer)
{
    return (uint32_t)((uintptr_t)buffer % SEGMENT_LINE / sizeof(uint64_t) * sizeof(uint64_t));
}

/* Returns the number of elements before the first one that starts a line. */
static inline size_t segment_to_line(const char *buffer, size_t unit, size_t count)
{
    size_t elements = -(uintptr_t)buffer % SEGMENT_LINE / unit;
    return elements < count ? elements : count;
}

static inline char *owner_slot_data(struct owner_slot *slot)
{
    return slot->data + slot->phase % SEGMENT_LINE;
}

/* A byte stream from one rank to another. */
struct stream_ring {
    alignas(SEGMENT_LINE) _Atomic uint64_t written;
    alignas(SEGMENT_LINE) _Atomic uint64_t read;
    _Atomic uint32_t refused; /* 1: the reader has refused an offer: messages/offer.c */
    alignas(SEGMENT_LINE) char data[STREAM_BYTES];
    alignas(SEGMENT_LINE) char second[SECOND_RING_BYTES]; /* a smaller ring: messages/offer.c */
};

/* What a rank publishes in a rooted call. */
struct rooted_slot {
    alignas(SEGMENT_LINE) _Atomic uint64_t published; /* 1 + the call's turn; written after the
                                                         other fields */
    uint64_t signature;
    char little[SEGMENT_LINE - 2 * sizeof(uint64_t)];
    char data[ROOTED_BYTES];
};

/* The slots of a rank. left: how many rooted calls it has left. */
struct rooted_slots {
    alignas(SEGMENT_LINE) _Atomic uint64_t left;
    struct rooted_slot slots[ROOTED_SLOTS];
};

static inline struct rooted_slot *rooted_slot_of(struct rooted_slots *slots, uint64_t turn)
{
    return &slots->slots[turn % ROOTED_SLOTS];
}

static inline char *rooted_blob(struct rooted_slot *slot, size_t bytes)
{
    return bytes <= sizeof slot->little ? slot->little : slot->data;
}

struct segment {
    int fd;
    int size; /* number of ranks */
    char *base;
    char *boards;
    char *rooted;
    size_t bytes;      /* bytes that are mapped at base */
    size_t file_bytes; /* bytes of the file, with the memory of muster_comm_alloc */
};

/* Creates a new file for `size` ranks and maps it. */
int segment_create(int size, struct segment *ret, struct muster_err *err);
/* Maps a file that another rank created; takes over fd, also on failure. MUSTER_EPROTO: the file is
 * not one that segment_create of this version made for `size` ranks. */
int segment_open(int fd, int size, struct segment *ret, struct muster_err *err);
/* Does nothing if fd < 0. */
void segment_close(struct segment *segment);
/* Called in a forked child, which does not have the mapping. */
void segment_hang_up(struct segment *segment);

/* Memory at the end of the file, a part for each rank. */
struct segment_extension {
    char *base; /* the part of rank 0, which the others follow; NULL: none */
    size_t part_bytes;
    size_t offset; /* in the file */
};

/* Every rank calls this with the same size, in the same order. part_bytes: whole pages. */
int segment_extend(struct segment *segment, size_t part_bytes, int my_index,
                   struct segment_extension *ret, struct muster_err *err);
void segment_retract(const struct segment *segment, struct segment_extension *extension);
/* Gives the memory of this rank's part back to the system. Called when nobody uses it any more. */
void segment_give_back(const struct segment *segment, const struct segment_extension *extension,
                       int my_index);

struct owner_slot *segment_owner_slot(const struct segment *segment, int owner, int contributor,
                                      size_t slot);
struct stream_ring *segment_stream(const struct segment *segment, int from, int to);

static inline struct control *segment_control(const struct segment *segment, int rank)
{
    return (struct control *)(void *)(segment->base + (size_t)rank * SEGMENT_PAGE);
}

static inline size_t segment_whole_pages(size_t bytes)
{
    return (bytes + SEGMENT_PAGE - 1) / SEGMENT_PAGE * SEGMENT_PAGE;
}

/* Inline, as the next function, because the fast path of a call takes some tens of nanoseconds. */
static inline struct rooted_slots *segment_rooted(const struct segment *segment, int rank)
{
    size_t stride = segment_whole_pages(sizeof(struct rooted_slots));
    return (struct rooted_slots *)(void *)(segment->rooted + (size_t)rank * stride);
}

static inline struct board *segment_board(const struct segment *segment, int rank, int lane,
                                          size_t slot)
{
    size_t start = lane == LANE_MAIN ? 0 : BOARD_SLOTS * BOARD_STRIDE;
    size_t stride = lane == LANE_MAIN ? BOARD_STRIDE : SIDE_STRIDE;
    return (struct board *)(void *)(segment->boards + (size_t)rank * BOARDS_BYTES + start +
                                    slot * stride);
}
