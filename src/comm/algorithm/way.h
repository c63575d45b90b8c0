/* What the ways of a collective keep: of a task while they run it, and of the last call that a
 * quick one took. To the rest of the library this is room of some size.
 *
 * Layer: comm. Memory: the task's, the communicator's. Thread: the holder of the lane, or the
 * caller's (quick.h).
 */
#pragma once

#include "comm/state/state.h"

typedef void (*direct_otherwise_fn)(struct muster_comm *comm, struct task *task);

/* All-reduce by shares in memory that all see. */
struct direct {
    const char *in;
    char *out;
    size_t unit;
    size_t bytes;
    size_t share_offset; /* of this rank, in bytes */
    size_t share_bytes;
    reduce_twin_fn twin; /* of two ranks, but for an average */
    reduce_fn fold;
    int divisor;
    uint32_t signature;
    uint32_t round;
    int published;
    bool stage_out;
    direct_otherwise_fn otherwise;
};

/* All-reduce of two ranks by chunks that change places. */
struct swap {
    const char *in;
    char *out;
    size_t unit;
    size_t count;
    size_t block; /* elements of a chunk */
    size_t chunks;
    struct ring_slot *sides[2];
    struct reduce_ways ways;
    int divisor;
    uint32_t signature;
    uint32_t base; /* turn of the first chunk */
    size_t filled; /* chunks sent … */
    size_t taken;  /* … and folded */
};

/* All-reduce by a ring of blocks through shared slots. */
struct ring {
    size_t block; /* elements of a part of a chunk */
    size_t chunks;
    reduce_fn fold;
    bool begun;
    uint32_t base;
    size_t filled;
    size_t folded;
    size_t taken;
};

/* One way may hand a task on to another, and still look at its own. */
struct way {
    struct schedule_hierarchy hierarchy;
    struct ring ring;
    struct direct direct;
    struct swap swap;
};
_Static_assert(sizeof(struct way) <= TASK_WAY_BYTES, "a task has room for it");
_Static_assert(alignof(struct way) <= alignof(void *), "and at a place that suits it");

static inline struct way *way_of(struct task *task)
{
    return (struct way *)(void *)task->way;
}

/* The last all-reduce that a quick way took (quick.h): the same again needs no second look. */
struct known_call {
    enum muster_type type;
    enum muster_op op;
    size_t count;
    size_t bytes;
    uint64_t shape;
    uint64_t digest;
    reduce_fn fold;
    int divisor;
    struct direct direct;
    struct swap swap;
    /* NULL: no call is known */
    int (*run)(struct muster_comm *comm, const void *in, void *out, struct muster_err *err);
};
_Static_assert(sizeof(struct known_call) <= COMM_QUICK_BYTES, "a communicator has room for it");
_Static_assert(alignof(struct known_call) <= alignof(void *), "and at a place that suits it");

static inline struct known_call *way_known(struct muster_comm *comm)
{
    return (struct known_call *)(void *)comm->quick;
}
