/* What the buffers of each collective hold before, and must hold after. Layer: program. */
#include "perf/perf.h"

#include "perf/value.h"

enum { PERIOD = 3, MOST_ONES = 64 };

/* Small enough for the products and sums of all ranks to be exact in every type. */
static double input(int rank, size_t i)
{
    return rank < PERIOD ? (double)((i + (size_t)rank) % PERIOD) : rank < MOST_ONES;
}

static double input_as(enum muster_type type, int rank, size_t i)
{
    return perf_folded(type, MUSTER_SUM, 1, input(rank, i));
}

void perf_fill(const struct perf_options *o, int rank, size_t elements, void *in)
{
    for (size_t i = 0; i < elements; i++) {
        perf_store(o->type, in, i, input(rank, i));
    }
}

static double reduced(const struct perf_options *o, size_t i)
{
    double value = input_as(o->type, 0, i);
    for (int r = 1; r < o->ranks; r++) {
        value = perf_fold(o->op, value, input_as(o->type, r, i));
    }
    return perf_folded(o->type, o->op, o->ranks, value);
}

/* Compares a block of `count` elements with those of `rank` from `start` on; rank -1: with their
 * reduction. */
static size_t wrong_in(const struct perf_options *o, const void *out, size_t at, size_t count,
                       int rank, size_t start)
{
    double want[PERIOD];
    size_t wrong = 0;
    for (size_t i = 0; i < PERIOD; i++) {
        want[i] = rank < 0 ? reduced(o, start + i) : input_as(o->type, rank, start + i);
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
