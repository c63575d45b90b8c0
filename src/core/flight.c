/* See flight.h. */
#include "core/flight.h"

#include <stdio.h>

static const char *const kinds[] = {
    [MUSTER_ALL_REDUCE] = "all_reduce",
    [MUSTER_REDUCE] = "reduce",
    [MUSTER_REDUCE_SCATTER] = "reduce_scatter",
    [MUSTER_ALL_GATHER] = "all_gather",
    [MUSTER_BROADCAST] = "broadcast",
    [MUSTER_GATHER] = "gather",
    [MUSTER_SCATTER] = "scatter",
    [MUSTER_ALL_TO_ALL] = "all_to_all",
    [MUSTER_BARRIER] = "barrier",
    [MUSTER_SEND] = "send",
    [MUSTER_RECV] = "recv",
};

static const char *const types[] = {
    [MUSTER_BOOL] = "bool", [MUSTER_U8] = "u8",   [MUSTER_I8] = "i8",   [MUSTER_I16] = "i16",
    [MUSTER_I32] = "i32",   [MUSTER_I64] = "i64", [MUSTER_F16] = "f16", [MUSTER_BF16] = "bf16",
    [MUSTER_F32] = "f32",   [MUSTER_F64] = "f64",
};

static const char *const ops[] = {
    [MUSTER_SUM] = "sum", [MUSTER_AVG] = "avg",   [MUSTER_PROD] = "prod", [MUSTER_MIN] = "min",
    [MUSTER_MAX] = "max", [MUSTER_BAND] = "band", [MUSTER_BOR] = "bor",   [MUSTER_BXOR] = "bxor",
};

_Static_assert(sizeof types / sizeof types[0] == MUSTER_NUM_TYPES, "each type has a name");
_Static_assert(sizeof ops / sizeof ops[0] == MUSTER_NUM_OPS, "each operation has a name");

static const char *name_in(const char *const *names, size_t count, unsigned value)
{
    return value < count ? names[value] : NULL;
}

const char *flight_kind_name(enum muster_collective kind)
{
    return name_in(kinds, sizeof kinds / sizeof kinds[0], (unsigned)kind);
}

const char *flight_type_name(enum muster_type type)
{
    return name_in(types, sizeof types / sizeof types[0], (unsigned)type);
}

const char *flight_op_name(enum muster_op op)
{
    return name_in(ops, sizeof ops / sizeof ops[0], (unsigned)op);
}

bool flight_reduces(enum muster_collective kind)
{
    return kind == MUSTER_ALL_REDUCE || kind == MUSTER_REDUCE || kind == MUSTER_REDUCE_SCATTER;
}

bool flight_has_root(enum muster_collective kind)
{
    return kind == MUSTER_REDUCE || kind == MUSTER_BROADCAST || kind == MUSTER_GATHER ||
           kind == MUSTER_SCATTER;
}

/* ---- Reading ---- */

int flight_read(const struct flight *flight, uint64_t number, uint64_t *ret_shape,
                uint64_t *ret_count)
{
    const struct flight_call *call = &flight->calls[number % FLIGHT_CALLS];
    if (atomic_load_explicit(&call->number, memory_order_acquire) != number) {
        return 0;
    }
    uint64_t shape = atomic_load_explicit(&call->shape, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&call->count, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&call->number, memory_order_relaxed) != number) {
        return 0; /* the record was overwritten meanwhile */
    }
    *ret_shape = shape;
    *ret_count = count;
    return 1;
}

uint64_t flight_newest(const struct flight *flight, uint64_t *ret_shape, uint64_t *ret_count)
{
    uint64_t newest = 0;
    for (int slot = 0; slot < FLIGHT_CALLS; slot++) {
        uint64_t number = atomic_load_explicit(&flight->calls[slot].number, memory_order_relaxed);
        if (number > newest && flight_read(flight, number, ret_shape, ret_count)) {
            newest = number;
        }
    }
    return newest;
}

bool flight_has_ended(const struct flight *flight, uint64_t number)
{
    const struct flight_call *call = &flight->calls[number % FLIGHT_CALLS];
    return atomic_load_explicit(&call->ended, memory_order_acquire) >= number;
}

uint64_t flight_pending(const struct flight *flight, uint64_t *ret_shape, uint64_t *ret_count)
{
    uint64_t oldest = 0;
    for (int slot = 0; slot < FLIGHT_CALLS; slot++) {
        uint64_t number = atomic_load_explicit(&flight->calls[slot].number, memory_order_acquire);
        bool earlier = number > 0 && (oldest == 0 || number < oldest);
        if (earlier && !flight_has_ended(flight, number) &&
            flight_read(flight, number, ret_shape, ret_count)) {
            oldest = number;
        }
    }
    return oldest;
}

uint64_t flight_waiting(const struct flight *flight, bool *ret_receives, int32_t *ret_peer,
                        int32_t *ret_tag)
{
    uint64_t oldest = 0;
    for (int slot = 0; slot < FLIGHT_MESSAGES; slot++) {
        const struct flight_message *m = &flight->messages[slot];
        uint64_t number = atomic_load_explicit(&m->number, memory_order_acquire);
        if (number > 0 && (oldest == 0 || number < oldest)) {
            oldest = number;
            *ret_receives = atomic_load_explicit(&m->receives, memory_order_relaxed) != 0;
            *ret_peer = atomic_load_explicit(&m->peer, memory_order_relaxed);
            *ret_tag = atomic_load_explicit(&m->tag, memory_order_relaxed);
        }
    }
    return oldest;
}

/* ---- Names ---- */

static const char *or_unknown(const char *name)
{
    return name ? name : "unknown";
}

void flight_name(uint64_t shape, uint64_t count, char *ret, size_t size_bytes)
{
    enum muster_collective kind = (enum muster_collective)(shape & 0xff);
    enum muster_type type = (enum muster_type)(shape >> 8 & 0xff);
    if (kind == MUSTER_BARRIER) {
        (void)snprintf(ret, size_bytes, "barrier");
        return;
    }
    int n = snprintf(ret, size_bytes, "%s of %llu %s", or_unknown(flight_kind_name(kind)),
                     (unsigned long long)count, or_unknown(flight_type_name(type)));
    if (n > 0 && (size_t)n < size_bytes && flight_reduces(kind)) {
        n += snprintf(ret + n, size_bytes - (size_t)n, " by %s",
                      or_unknown(flight_op_name((enum muster_op)(shape >> 16 & 0xff))));
    }
    if (n > 0 && (size_t)n < size_bytes && flight_has_root(kind)) {
        (void)snprintf(ret + n, size_bytes - (size_t)n, ", root %u", (unsigned)(shape >> 32));
    } else if (n > 0 && (size_t)n < size_bytes && shape >> 32) {
        (void)snprintf(ret + n, size_bytes - (size_t)n, ", with counts (digest %08x)",
                       (unsigned)(shape >> 32));
    }
}
