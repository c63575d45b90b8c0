/* Fills the buffers of each collective before a call, and checks them after it. Layer: program. */
#include "perf/perf.h"

#include "comm/state/types.h"
#include "perf/value.h"

#include <stdint.h>

/* The inputs repeat with a prime period, so that no block or buffer is a multiple of it. */
enum { PERIOD = 1021, MOST_COPIED = 101, MOST_REDUCED = 3 };

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Returns a value that no reduction changes, so that results stay small and exact in every type. */
static double neutral(const struct perf_options *o)
{
    bool is_or = o->op == MUSTER_MAX || o->op == MUSTER_BOR || o->op == MUSTER_BXOR ||
                 (o->op == MUSTER_SUM && o->type == MUSTER_BOOL);
    return is_or ? 0 : 1;
}

/* Each element depends on its place and its rank. In a reduction only one rank has such a value at
 * each place, and the others have the neutral one. */
static double input(const struct perf_options *o, int rank, size_t i)
{
    uint64_t place = mix(i % PERIOD + 1);
    if (types_find_kind(o->kind)->reduces) {
        bool mine = place % (uint64_t)o->ranks == (uint64_t)rank;
        return mine ? (double)(mix(place) % MOST_REDUCED) : neutral(o);
    }
    return (double)(mix(place + (uint64_t)rank) % (o->type == MUSTER_BOOL ? 2 : MOST_COPIED));
}

static double input_as(const struct perf_options *o, int rank, size_t i)
{
    return perf_finish(o->type, MUSTER_SUM, 1, input(o, rank, i));
}

void perf_fill(const struct perf_options *o, int rank, size_t elements, void *in)
{
    for (size_t i = 0; i < elements; i++) {
        perf_store(o->type, in, i, input(o, rank, i));
    }
}

static double reduced(const struct perf_options *o, size_t i)
{
    double value = input_as(o, 0, i);
    for (int r = 1; r < o->ranks; r++) {
        value = perf_reduce(o->op, value, input_as(o, r, i));
    }
    return perf_finish(o->type, o->op, o->ranks, value);
}

/* Compares a block of `count` elements with those of `rank` from `start` on; rank -1: with their
 * reduction. */
static size_t wrong_in(const struct perf_options *o, const void *out, size_t at, size_t count,
                       int rank, size_t start)
{
    double want[PERIOD];
    size_t wrong = 0;
    for (size_t i = 0; i < PERIOD && i < count; i++) {
        want[i] = rank < 0 ? reduced(o, start + i) : input_as(o, rank, start + i);
    }
    for (size_t i = 0; i < count; i++) {
        wrong += perf_load(o->type, out, at + i) != want[i % PERIOD];
    }
    return wrong;
}

static size_t wrong_in_blocks(const struct perf_options *o, const void *out, size_t count,
                              size_t start)
{
    size_t wrong = 0;
    for (int r = 0; r < o->ranks; r++) {
        wrong += wrong_in(o, out, (size_t)r * count, count, r, start);
    }
    return wrong;
}

size_t perf_count_wrong(const struct perf_options *o, int rank, size_t count, const void *out)
{
    size_t mine = (size_t)rank * count;
    switch (o->kind) {
    case MUSTER_ALL_REDUCE: return wrong_in(o, out, 0, count, -1, 0);
    case MUSTER_REDUCE: return rank == 0 ? wrong_in(o, out, 0, count, -1, 0) : 0;
    case MUSTER_REDUCE_SCATTER: return wrong_in(o, out, 0, count, -1, mine);
    case MUSTER_ALL_GATHER: return wrong_in_blocks(o, out, count, 0);
    case MUSTER_GATHER: return rank == 0 ? wrong_in_blocks(o, out, count, 0) : 0;
    case MUSTER_ALL_TO_ALL: return wrong_in_blocks(o, out, count, mine);
    case MUSTER_BROADCAST: return wrong_in(o, out, 0, count, 0, 0);
    case MUSTER_SCATTER: return wrong_in(o, out, 0, count, 0, mine);
    case MUSTER_BARRIER:
    case MUSTER_SEND:
    case MUSTER_RECV: return 0;
    }
    return 0;
}
