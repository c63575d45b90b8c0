/* A call that was checked (api/prepare.c), with all that the layers below need of it. These layers
 * do not read struct muster_call: so a call that was not checked cannot be run, and nothing is
 * computed twice.
 *
 * Layer: comm. Memory: the task's; buffers and counts are the user's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <muster/comm.h>

#include "comm/reduce/reduce.h"

struct prepared {
    enum muster_collective kind;
    enum muster_type type;
    enum muster_op op;
    int peer; /* the root, or the other rank of a message */
    int tag;
    const void *in;
    void *out;
    size_t count;             /* 0 for a barrier, or if there are counts */
    const size_t *in_counts;  /* NULL: the kind has no counts, or none were given */
    const size_t *out_counts; /* NULL: the same */
    bool rooted;              /* the kind has a root */
    int lane;
    size_t unit;                   /* bytes of an element */
    size_t bytes;                  /* bytes of count elements */
    int divisor;                   /* for an average; otherwise 1 */
    struct reduce_kernels kernels; /* all NULL if the call reduces nothing */
    uint64_t shape; /* what must be equal on all ranks: kind, type, operation and root, … */
    uint64_t total; /* … and the number of elements */
};

static inline bool prepared_reduces(const struct prepared *call)
{
    return call->kernels.reduce;
}

static inline bool prepared_is_message(const struct prepared *call)
{
    return call->kind == MUSTER_SEND || call->kind == MUSTER_RECV;
}
