/* The patterns of collectives. Layer: pure; see exchange.h. */
#include "schedule/exchange.h"

#include "core/size.h"
#include "schedule/partition.h"

#include <assert.h>

/* PACKET_BYTES: with a frame's header, TCP passes this on as one packet of up to 64 KiB (GSO), in
 * whole segments of any usual size. */
enum { SPLIT_PIECES = 128, PACKET_BYTES = 60 * 1024, SPLIT_MOST_PACKETS = 2 };

static const struct schedule_piece no_piece = {0, 0};

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

static size_t larger_of_counts(const size_t *counts, size_t count, int size)
{
    if (!counts) {
        return count;
    }
    size_t most = 0;
    for (int r = 0; r < size; r++) {
        most = counts[r] > most ? counts[r] : most;
    }
    return most;
}

static bool is_shared(enum schedule_pattern pattern)
{
    return pattern != SCHEDULE_REDUCE_SCATTER && pattern != SCHEDULE_SCATTER &&
           pattern != SCHEDULE_ALL_TO_ALL && pattern != SCHEDULE_ALL_REDUCE_SPLIT;
}

size_t schedule_stripe(const struct schedule_exchange *x)
{
    size_t stripe = x->capacity / (size_t)x->size;
    return stripe > 64 ? stripe / 64 * 64 : stripe;
}

/* Large calls use larger pieces, which cost fewer turns. Pieces are whole packets: pieces of 64
 * KiB, each followed by a small packet, took 1.2 times as long, with cubic twice as long (measured,
 * 1 to 16 MiB). */
static size_t split_piece_bytes(const struct schedule_exchange *x)
{
    size_t packets = x->count * x->unit / SPLIT_PIECES / PACKET_BYTES;
    packets = packets < 1 ? 1 : size_min(packets, SPLIT_MOST_PACKETS);
    return size_min(schedule_stripe(x), packets * PACKET_BYTES);
}

static bool reduces(enum schedule_pattern pattern)
{
    return pattern == SCHEDULE_ALL_REDUCE || pattern == SCHEDULE_ALL_REDUCE_SPLIT ||
           pattern == SCHEDULE_REDUCE || pattern == SCHEDULE_REDUCE_SCATTER;
}

/* Returns the bytes of the largest piece. */
static size_t piece_bytes(const struct schedule_exchange *x)
{
    bool split = x->pattern == SCHEDULE_ALL_REDUCE_SPLIT;
    size_t bytes = is_shared(x->pattern) ? x->capacity
                   : split               ? split_piece_bytes(x)
                                         : schedule_stripe(x);
    return x->reduce_bytes > 0 && reduces(x->pattern) ? size_min(bytes, x->reduce_bytes) : bytes;
}

void schedule_plan(struct schedule_exchange *x)
{
    assert(x->size > 0 && x->capacity / (size_t)x->size >= x->unit);
    assert(x->reduce_bytes == 0 || x->reduce_bytes >= x->unit);
    x->piece = piece_bytes(x) / x->unit;
    size_t most = x->count;
    if (x->pattern == SCHEDULE_BARRIER) {
        most = 0;
    } else if (x->pattern == SCHEDULE_ALL_REDUCE_SPLIT) {
        x->rounds = 2 * partition_chunks(x->count, x->size, x->piece);
        x->rounds = x->rounds > 0 ? x->rounds : 1;
        return;
    } else if (x->pattern == SCHEDULE_ALL_GATHER || x->pattern == SCHEDULE_GATHER) {
        most = larger_of_counts(x->out_counts, x->count, x->size);
    } else if (x->pattern == SCHEDULE_REDUCE_SCATTER) {
        most = larger_of_counts(x->in_counts, x->count, x->size);
    } else if (x->pattern == SCHEDULE_ALL_TO_ALL) {
        size_t in = larger_of_counts(x->in_counts, x->count, x->size);
        size_t out = larger_of_counts(x->out_counts, x->count, x->size);
        most = in > out ? in : out;
        most = x->count > most ? x->count : most; /* what other ranks may have */
    }
    /* There is at least one round, so that success means that every rank has entered. */
    x->rounds = most > x->piece ? divide_up(most, x->piece) : 1;
}

/* The split all-reduce of n chunks runs RS 0, RS 1, AG 0, RS 2, AG 1, …, RS n - 1, AG n - 2,
 * AG n - 1: an all-gather is published two rounds after its reduce-scatter, which has been consumed
 * by then. If there is only one chunk, schedule_needs says that the reduce-scatter must be consumed
 * first. */
static bool split_gathers(const struct schedule_exchange *x, size_t round)
{
    return round > 0 && (round % 2 == 0 || round == x->rounds - 1);
}

static size_t split_chunk(const struct schedule_exchange *x, size_t round)
{
    if (!split_gathers(x, round)) {
        return (round + 1) / 2;
    }
    return round == x->rounds - 1 ? round / 2 : round / 2 - 1;
}

size_t schedule_needs(const struct schedule_exchange *x, size_t round)
{
    if (x->pattern == SCHEDULE_ALL_REDUCE_SPLIT && x->rounds == 2) {
        return round;
    }
    return round > 0 ? round - 1 : 0;
}

struct schedule_round schedule_round(const struct schedule_exchange *x, size_t round)
{
    switch (x->pattern) {
    case SCHEDULE_BARRIER: return (struct schedule_round){SCHEDULE_NOTHING, true, false};
    case SCHEDULE_ALL_REDUCE: return (struct schedule_round){SCHEDULE_REDUCE_PIECES, true, false};
    case SCHEDULE_REDUCE_SCATTER:
        return (struct schedule_round){SCHEDULE_REDUCE_PIECES, false, false};
    case SCHEDULE_REDUCE:
        return (struct schedule_round){
            x->rank == x->root ? SCHEDULE_REDUCE_PIECES : SCHEDULE_NOTHING, true, false};
    case SCHEDULE_ALL_REDUCE_SPLIT:
        if (x->count == 0) {
            return (struct schedule_round){SCHEDULE_NOTHING, true, false};
        }
        return split_gathers(x, round)
                   ? (struct schedule_round){SCHEDULE_COPY, true, true}
                   : (struct schedule_round){SCHEDULE_REDUCE_PIECES, false, false};
    case SCHEDULE_ALL_GATHER:
    case SCHEDULE_BROADCAST:
    case SCHEDULE_GATHER: return (struct schedule_round){SCHEDULE_COPY, true, false};
    case SCHEDULE_SCATTER:
    case SCHEDULE_ALL_TO_ALL: return (struct schedule_round){SCHEDULE_COPY, false, false};
    }
    assert(!"unreachable");
    return (struct schedule_round){SCHEDULE_NOTHING, true, false};
}

/* Returns the piece of this round, of a block that starts at element `start`. */
static struct schedule_piece piece_of(const struct schedule_exchange *x, size_t start, size_t count,
                                      size_t round)
{
    size_t first = size_min(round * x->piece, count);
    size_t length = size_min(x->piece, count - first);
    return (struct schedule_piece){(start + first) * x->unit, length * x->unit};
}

static size_t block_count(const struct schedule_exchange *x, const size_t *counts, int rank)
{
    return counts ? counts[rank] : x->count;
}

static size_t block_start(const struct schedule_exchange *x, const size_t *counts,
                          const size_t *starts, int rank)
{
    if (starts) {
        return starts[rank];
    }
    if (!counts) {
        return x->count * (size_t)rank;
    }
    size_t start = 0;
    for (int r = 0; r < rank; r++) {
        start += counts[r];
    }
    return start;
}

/* Returns a piece of the input's block that is sent to this rank. */
static struct schedule_piece in_piece(const struct schedule_exchange *x, int rank, size_t round)
{
    return piece_of(x, block_start(x, x->in_counts, x->in_starts, rank),
                    block_count(x, x->in_counts, rank), round);
}

/* Returns the place in the output of a piece that comes from this rank. */
static struct schedule_piece out_piece(const struct schedule_exchange *x, int rank, size_t round)
{
    return piece_of(x, block_start(x, x->out_counts, x->out_starts, rank),
                    block_count(x, x->out_counts, rank), round);
}

static struct schedule_piece split_piece(const struct schedule_exchange *x, size_t round, int owner)
{
    if (x->count == 0) {
        return no_piece;
    }
    struct partition p = partition_part(x->count, x->size, x->piece, split_chunk(x, round), owner);
    return (struct schedule_piece){p.first * x->unit, p.count * x->unit};
}

struct schedule_piece schedule_send(const struct schedule_exchange *x, size_t round, int to)
{
    bool rooted = to == x->root;
    switch (x->pattern) {
    case SCHEDULE_BARRIER: return no_piece;
    case SCHEDULE_ALL_REDUCE: return piece_of(x, 0, x->count, round);
    case SCHEDULE_REDUCE: return rooted ? piece_of(x, 0, x->count, round) : no_piece;
    case SCHEDULE_ALL_REDUCE_SPLIT:
        return split_piece(x, round, split_gathers(x, round) ? x->rank : to);
    case SCHEDULE_REDUCE_SCATTER: return in_piece(x, to, round);
    case SCHEDULE_ALL_GATHER: return piece_of(x, 0, block_count(x, x->out_counts, x->rank), round);
    case SCHEDULE_BROADCAST: return x->rank == x->root ? piece_of(x, 0, x->count, round) : no_piece;
    case SCHEDULE_GATHER:
        return rooted ? piece_of(x, 0, block_count(x, x->out_counts, x->rank), round) : no_piece;
    case SCHEDULE_SCATTER: return x->rank == x->root ? in_piece(x, to, round) : no_piece;
    case SCHEDULE_ALL_TO_ALL: return in_piece(x, to, round);
    }
    assert(!"unreachable");
    return no_piece;
}

struct schedule_piece schedule_shared(const struct schedule_exchange *x, size_t round)
{
    bool to_root = x->pattern == SCHEDULE_REDUCE || x->pattern == SCHEDULE_GATHER;
    return schedule_send(x, round, to_root ? x->root : x->rank);
}

struct schedule_piece schedule_receive(const struct schedule_exchange *x, size_t round, int from)
{
    switch (x->pattern) {
    case SCHEDULE_BARRIER: return no_piece;
    case SCHEDULE_ALL_REDUCE: return piece_of(x, 0, x->count, round);
    case SCHEDULE_REDUCE: return x->rank == x->root ? piece_of(x, 0, x->count, round) : no_piece;
    case SCHEDULE_ALL_REDUCE_SPLIT:
        return split_piece(x, round, split_gathers(x, round) ? from : x->rank);
    case SCHEDULE_REDUCE_SCATTER:
        return piece_of(x, 0, block_count(x, x->in_counts, x->rank), round);
    case SCHEDULE_BROADCAST: return from == x->root ? piece_of(x, 0, x->count, round) : no_piece;
    case SCHEDULE_ALL_GATHER: return out_piece(x, from, round);
    case SCHEDULE_GATHER: return x->rank == x->root ? out_piece(x, from, round) : no_piece;
    case SCHEDULE_SCATTER: return from == x->root ? piece_of(x, 0, x->count, round) : no_piece;
    case SCHEDULE_ALL_TO_ALL: return out_piece(x, from, round);
    }
    assert(!"unreachable");
    return no_piece;
}
