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
    size_t count;             /* 0: a barrier, or counts say it */
    const size_t *in_counts;  /* NULL: the kind has none … */
    const size_t *out_counts; /* … or none were given */
    bool rooted;              /* the kind has a root */
    int lane;
    size_t unit;                   /* bytes of an element */
    size_t bytes;                  /* of count elements */
    int divisor;                   /* of an average; else 1 */
    struct reduce_kernels kernels; /* all NULL: it reduces nothing */
    uint64_t shape; /* what must be equal on all ranks: kind, type, operation, root … */
    uint64_t total; /* … and elements */
};

static inline bool prepared_reduces(const struct prepared *call)
{
    return call->kernels.reduce;
}

static inline bool prepared_is_message(const struct prepared *call)
{
    return call->kind == MUSTER_SEND || call->kind == MUSTER_RECV;
}
