/* Names and sizes of types, operations and calls. Layer: comm; pure. */
#include "comm/state/types.h"

#include "core/flight.h"

static const size_t type_bytes[] = {
    [MUSTER_BOOL] = 1, [MUSTER_U8] = 1,  [MUSTER_I8] = 1,   [MUSTER_I16] = 2, [MUSTER_I32] = 4,
    [MUSTER_I64] = 8,  [MUSTER_F16] = 2, [MUSTER_BF16] = 2, [MUSTER_F32] = 4, [MUSTER_F64] = 8,
};

bool types_has_type(enum muster_type type)
{
    return (unsigned)type < sizeof type_bytes / sizeof type_bytes[0];
}

bool types_has_op(enum muster_op op)
{
    return flight_op_name(op);
}

bool types_has_kind(enum muster_collective kind)
{
    return flight_kind_name(kind);
}

bool types_reduces(enum muster_collective kind)
{
    return flight_reduces(kind);
}

bool types_has_peer(enum muster_collective kind)
{
    return flight_has_root(kind);
}

const char *types_kind_name(enum muster_collective kind)
{
    return types_has_kind(kind) ? flight_kind_name(kind) : "unknown call";
}

size_t muster_type_bytes(enum muster_type type)
{
    return types_has_type(type) ? type_bytes[type] : 0;
}

const char *muster_type_name(enum muster_type type)
{
    return types_has_type(type) ? flight_type_name(type) : "unknown type";
}

const char *muster_op_name(enum muster_op op)
{
    return types_has_op(op) ? flight_op_name(op) : "unknown operation";
}

const char *muster_peer_state_name(enum muster_peer_state state)
{
    static const char *const names[] = {[MUSTER_PEER_ALIVE] = "alive",
                                        [MUSTER_PEER_DEAD] = "dead",
                                        [MUSTER_PEER_SUSPECTED] = "suspected",
                                        [MUSTER_PEER_CLOSED] = "closed"};
    return (unsigned)state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

bool types_has_counts(const struct muster_call *call)
{
    return (call->kind == MUSTER_ALL_GATHER && call->out_counts) ||
           (call->kind == MUSTER_ALL_TO_ALL && (call->in_counts || call->out_counts));
}

struct muster_call types_own_fields(const struct muster_call *call)
{
    struct muster_call own = *call;
    if (!types_has_counts(call)) {
        own.in_counts = own.out_counts = NULL;
    } else if (call->kind == MUSTER_ALL_GATHER) {
        own.in_counts = NULL;
    }
    if (types_has_counts(call) || call->kind == MUSTER_BARRIER) {
        own.count = 0;
    }
    return own;
}

size_t types_total(const size_t *counts, int size)
{
    size_t sum = 0;
    for (int r = 0; r < size; r++) {
        if (__builtin_add_overflow(sum, counts[r], &sum)) {
            return SIZE_MAX;
        }
    }
    return sum;
}

static size_t elements_in(const struct muster_call *call, int rank, int size)
{
    bool blocks = call->kind == MUSTER_REDUCE_SCATTER || call->kind == MUSTER_SCATTER ||
                  call->kind == MUSTER_ALL_TO_ALL;
    if (call->kind == MUSTER_ALL_GATHER && call->out_counts) {
        return call->out_counts[rank];
    }
    return call->in_counts ? types_total(call->in_counts, size)
                           : call->count * (blocks ? (size_t)size : 1);
}

static size_t elements_out(const struct muster_call *call, int size)
{
    bool blocks = call->kind == MUSTER_ALL_GATHER || call->kind == MUSTER_GATHER ||
                  call->kind == MUSTER_ALL_TO_ALL;
    return call->out_counts ? types_total(call->out_counts, size)
                            : call->count * (blocks ? (size_t)size : 1);
}

bool types_is_in_place(const struct muster_call *call, int rank, int size)
{
    if (call->kind == MUSTER_BROADCAST) {
        return true;
    }
    size_t unit = muster_type_bytes(call->type);
    uintptr_t in = (uintptr_t)call->in, out = (uintptr_t)call->out;
    return call->in && call->out && in < out + elements_out(call, size) * unit &&
           out < in + elements_in(call, rank, size) * unit;
}
