/* The blocking functions of muster/comm.h: each is a call as data. Layer: comm. */
#include "comm/quick.h"

#include <muster/comm.h>

#include <stddef.h>

static __attribute__((noinline)) int all_reduce(struct muster_comm *comm, const void *in, void *out,
                                                size_t count, enum muster_type type,
                                                enum muster_op op, struct muster_err *err)
{
    struct muster_call call = {
        .kind = MUSTER_ALL_REDUCE, .type = type, .op = op, .in = in, .out = out, .count = count};
    return muster_run(comm, &call, err);
}

int muster_all_reduce(struct muster_comm *comm, const void *in, void *out, size_t count,
                      enum muster_type type, enum muster_op op, struct muster_err *err)
{
    if (quick_knows(comm, in, out, count, type, op)) {
        return comm->known.run(comm, in, out, err);
    }
    return all_reduce(comm, in, out, count, type, op, err);
}

int muster_reduce(struct muster_comm *comm, const void *in, void *out, size_t count,
                  enum muster_type type, enum muster_op op, int root, struct muster_err *err)
{
    struct muster_call call = {.kind = MUSTER_REDUCE,
                               .type = type,
                               .op = op,
                               .peer = root,
                               .in = in,
                               .out = out,
                               .count = count};
    return muster_run(comm, &call, err);
}

int muster_reduce_scatter(struct muster_comm *comm, const void *in, void *out, size_t count,
                          enum muster_type type, enum muster_op op, struct muster_err *err)
{
    struct muster_call call = {.kind = MUSTER_REDUCE_SCATTER,
                               .type = type,
                               .op = op,
                               .in = in,
                               .out = out,
                               .count = count};
    return muster_run(comm, &call, err);
}

int muster_all_gather(struct muster_comm *comm, const void *in, void *out, size_t count,
                      enum muster_type type, struct muster_err *err)
{
    struct muster_call call = {
        .kind = MUSTER_ALL_GATHER, .type = type, .in = in, .out = out, .count = count};
    return muster_run(comm, &call, err);
}

int muster_all_gatherv(struct muster_comm *comm, const void *in, void *out, const size_t *counts,
                       enum muster_type type, struct muster_err *err)
{
    struct muster_call call = {
        .kind = MUSTER_ALL_GATHER, .type = type, .in = in, .out = out, .out_counts = counts};
    return muster_run(comm, &call, err);
}

int muster_broadcast(struct muster_comm *comm, void *buffer, size_t count, enum muster_type type,
                     int root, struct muster_err *err)
{
    struct muster_call call = {
        .kind = MUSTER_BROADCAST, .type = type, .peer = root, .out = buffer, .count = count};
    return muster_run(comm, &call, err);
}

int muster_gather(struct muster_comm *comm, const void *in, void *out, size_t count,
                  enum muster_type type, int root, struct muster_err *err)
{
    struct muster_call call = {
        .kind = MUSTER_GATHER, .type = type, .peer = root, .in = in, .out = out, .count = count};
    return muster_run(comm, &call, err);
}

int muster_scatter(struct muster_comm *comm, const void *in, void *out, size_t count,
                   enum muster_type type, int root, struct muster_err *err)
{
    struct muster_call call = {
        .kind = MUSTER_SCATTER, .type = type, .peer = root, .in = in, .out = out, .count = count};
    return muster_run(comm, &call, err);
}

int muster_all_to_all(struct muster_comm *comm, const void *in, void *out, size_t count,
                      enum muster_type type, struct muster_err *err)
{
    struct muster_call call = {
        .kind = MUSTER_ALL_TO_ALL, .type = type, .in = in, .out = out, .count = count};
    return muster_run(comm, &call, err);
}

int muster_all_to_allv(struct muster_comm *comm, const void *in, const size_t *in_counts, void *out,
                       const size_t *out_counts, enum muster_type type, struct muster_err *err)
{
    struct muster_call call = {.kind = MUSTER_ALL_TO_ALL,
                               .type = type,
                               .in = in,
                               .out = out,
                               .in_counts = in_counts,
                               .out_counts = out_counts};
    return muster_run(comm, &call, err);
}

int muster_barrier(struct muster_comm *comm, struct muster_err *err)
{
    struct muster_call call = {.kind = MUSTER_BARRIER};
    return muster_run(comm, &call, err);
}

int muster_send(struct muster_comm *comm, const void *in, size_t count, enum muster_type type,
                int to, int tag, struct muster_err *err)
{
    struct muster_call call = {
        .kind = MUSTER_SEND, .type = type, .peer = to, .tag = tag, .in = in, .count = count};
    return muster_run(comm, &call, err);
}
