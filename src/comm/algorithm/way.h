/* What the algorithms of a collective keep: in a task while they run it, and of the last call that
 * a fast path took. The rest of the library sees only memory of some size.
 *
 * Layer: comm. Memory: the task's, the communicator's. Thread: the holder of the lane, or the
 * caller's (fast_path.h).
 */
#pragma once

#include "comm/state/state.h"
#include "schedule/rounds.h"

typedef void (*zero_copy_fallback_fn)(struct muster_comm *comm, struct task *task);

/* All-reduce in one round, in which each rank reduces all. */
struct small {
    const struct prepared *call; /* without its buffers, which follow */
    const char *in;
    char *out;
    const void **sources; /* room for one pointer for each rank, valid during one step */
    uint32_t signature;
    uint32_t base; /* the first round, as the boards count */
    struct schedule_rounds at;
};

/* All-reduce by shares, in memory that all ranks see. */
struct zero_copy {
    const char *in;
    char *out;
    size_t unit;
    size_t bytes;
    size_t share_offset; /* start of this rank's share, in bytes */
    size_t share_bytes;
    reduce_twin_fn twin; /* only for two ranks, and not for an average */
    reduce_fn reduce;
    int divisor;
    uint32_t signature;
    uint32_t base; /* the first round, as the boards count */
    struct schedule_rounds at;
    bool stage_out;
    zero_copy_fallback_fn fallback;
};

/* All-reduce of two ranks, which exchange chunks. */
struct pairwise {
    const char *in;
    char *out;
    size_t unit;
    size_t count;
    size_t block; /* elements of a chunk */
    struct owner_slot *sides[2];
    struct reduce_kernels kernels;
    int divisor;
    uint32_t signature;
    uint32_t base;             /* turn of the first chunk */
    struct schedule_rounds at; /* each chunk is a round */
};

/* All-reduce by a ring of blocks through shared slots. */
struct owner_reduce {
    size_t block; /* elements of a part of a chunk */
    size_t chunks;
    bool begun;
    uint32_t base;
    size_t filled;
    size_t reduced;
    size_t taken;
};

/* Copies out of the memory of the other ranks. */
struct large_copy {
    struct task *task; /* set in each step */
    const struct exchange
        *exchange; /* set in each step; its plan has one round, in which all is copied */
    uint32_t signature;
    uint32_t base; /* the first round, as the boards count */
    struct schedule_rounds at;
    uint64_t choice;  /* chosen by rank 0 */
    int64_t begun_ns; /* when rank 0 began the call */
    uint64_t outcome; /* how this rank's reads went */
};

/* A rooted call through slots of its own. */
struct rooted {
    uint64_t turn;
    int arrived; /* all ranks below this number have published */
};

/* Not a union: one way may hand a task over to another, and still read its own state. */
struct way {
    struct schedule_hierarchy hierarchy;
    struct small small;
    struct owner_reduce owner_reduce;
    struct zero_copy zero_copy;
    struct pairwise pairwise;
    struct rooted rooted;
    struct large_copy large_copy;
};
_Static_assert(sizeof(struct way) <= TASK_WAY_BYTES, "a task has room for it");
_Static_assert(alignof(struct way) <= alignof(void *), "and at a place that suits it");

static inline struct way *way_of(struct task *task)
{
    return (struct way *)(void *)task->way;
}

/* The last all-reduce that a fast path took (fast_path.h): the same call again needs no check. */
struct plan {
    struct prepared call; /* its buffers are those of that call */
    uint64_t digest;
    union { /* `run` says which one is used; small.c needs none */
        struct zero_copy zero_copy;
        struct pairwise pairwise;
    };
    /* NULL: there is no plan */
    int (*run)(struct muster_comm *comm, const void *in, void *out, struct muster_err *err);
};
_Static_assert(sizeof(struct plan) <= COMM_PLAN_BYTES, "a communicator has room for it");
_Static_assert(alignof(struct plan) <= alignof(void *), "and at a place that suits it");

static inline struct plan *way_plan(struct muster_comm *comm)
{
    return (struct plan *)(void *)comm->plan;
}
