/* Names and sizes of types, operations and calls. Layer: comm; pure. */
#include "comm/state/types.h"

#include "core/flight.h"

static const size_t type_bytes[] = {
    [MUSTER_BOOL] = 1, [MUSTER_U8] = 1,  [MUSTER_I8] = 1,   [MUSTER_I16] = 2, [MUSTER_I32] = 4,
    [MUSTER_I64] = 8,  [MUSTER_F16] = 2, [MUSTER_BF16] = 2, [MUSTER_F32] = 4, [MUSTER_F64] = 8,
};

_Static_assert(sizeof type_bytes / sizeof type_bytes[0] == MUSTER_NUM_TYPES, "each has a size");

static const struct types_kind kinds[] = {
    [MUSTER_ALL_REDUCE] = {.reduces = true, .in = TYPES_ALL, .out = TYPES_ALL},
    [MUSTER_REDUCE] = {.reduces = true, .rooted = true, .in = TYPES_ALL, .out = TYPES_ROOT},
    [MUSTER_REDUCE_SCATTER] = {.reduces = true, .in = TYPES_ALL, .out = TYPES_ALL},
    [MUSTER_ALL_GATHER] = {.in = TYPES_ALL, .out = TYPES_ALL, .counts = TYPES_OUT_COUNTS},
    [MUSTER_BROADCAST] = {.rooted = true, .out = TYPES_ALL},
    [MUSTER_GATHER] = {.rooted = true, .in = TYPES_ALL, .out = TYPES_ROOT},
    [MUSTER_SCATTER] = {.rooted = true, .in = TYPES_ROOT, .out = TYPES_ALL},
    [MUSTER_ALL_TO_ALL] = {.in = TYPES_ALL, .out = TYPES_ALL, .counts = TYPES_BOTH_COUNTS},
    [MUSTER_BARRIER] = {.in = TYPES_NONE},
    [MUSTER_SEND] = {.in = TYPES_ALL},
    [MUSTER_RECV] = {.out = TYPES_ALL},
};

const struct types_kind *types_find_kind(enum muster_collective kind)
{
    return (unsigned)kind < sizeof kinds / sizeof kinds[0] ? &kinds[kind] : NULL;
}

bool types_has_type(enum muster_type type)
{
    return (unsigned)type < sizeof type_bytes / sizeof type_bytes[0];
}

bool types_has_op(enum muster_op op)
{
    return flight_op_name(op);
}

const char *types_kind_name(enum muster_collective kind)
{
    return types_find_kind(kind) ? flight_kind_name(kind) : "unknown call";
}

size_t types_bytes(enum muster_type type)
{
    return types_has_type(type) ? type_bytes[type] : 0;
}

size_t muster_type_bytes(enum muster_type type)
{
    return types_bytes(type);
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

static size_t elements_in(const struct prepared *call, int rank, int size)
{
    bool blocks = call->kind == MUSTER_REDUCE_SCATTER || call->kind == MUSTER_SCATTER ||
                  call->kind == MUSTER_ALL_TO_ALL;
    if (call->kind == MUSTER_ALL_GATHER && call->out_counts) {
        return call->out_counts[rank];
    }
    return call->in_counts ? types_total(call->in_counts, size)
                           : call->count * (blocks ? (size_t)size : 1);
}

static size_t elements_out(const struct prepared *call, int size)
{
    bool blocks = call->kind == MUSTER_ALL_GATHER || call->kind == MUSTER_GATHER ||
                  call->kind == MUSTER_ALL_TO_ALL;
    return call->out_counts ? types_total(call->out_counts, size)
                            : call->count * (blocks ? (size_t)size : 1);
}

bool types_is_in_place(const struct prepared *call, int rank, int size)
{
    if (call->kind == MUSTER_BROADCAST) {
        return true;
    }
    uintptr_t in = (uintptr_t)call->in, out = (uintptr_t)call->out;
    return call->in && call->out && in < out + elements_out(call, size) * call->unit &&
           out < in + elements_in(call, rank, size) * call->unit;
}
