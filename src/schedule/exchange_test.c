/* The checker: runs a schedule for all ranks of a world in one process, in any order that the rule
 * "publish at most one round ahead" allows, and compares with the definition of the collective. */
#include "schedule/exchange.h"

#include "base/testing/test.h"

enum { WORLD = 9, SLOTS = 4, CAPACITY = 256, ELEMENTS = 600 };

struct rank {
    struct schedule_exchange x;
    uint32_t in[WORLD * ELEMENTS];
    uint32_t out[WORLD * ELEMENTS];
    char board[SLOTS][CAPACITY];
    size_t published;
    size_t consumed;
};

static struct rank ranks[WORLD];
static uint64_t seed = 1;
static size_t reduce_bytes; /* of the schedules that are run */

static uint64_t draw(uint64_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % limit;
}

static void publish(struct rank *r)
{
    size_t j = r->published++;
    struct schedule_round round = schedule_round(&r->x, j);
    const char *source = round.from_out ? (char *)r->out : (char *)r->in;
    char *board = r->board[j % SLOTS];
    if (round.shared) {
        struct schedule_piece p = schedule_shared(&r->x, j);
        assert_true(p.bytes <= CAPACITY);
        memcpy(board, source + p.offset, p.bytes);
        return;
    }
    for (int to = 0; to < r->x.size; to++) {
        struct schedule_piece p = schedule_send(&r->x, j, to);
        assert_true(p.bytes <= schedule_stripe(&r->x));
        memcpy(board + (size_t)to * schedule_stripe(&r->x), source + p.offset, p.bytes);
    }
}

static void consume(struct rank *r)
{
    size_t j = r->consumed++;
    struct schedule_round round = schedule_round(&r->x, j);
    for (int from = 0; from < r->x.size && round.action != SCHEDULE_NOTHING; from++) {
        struct schedule_piece p = schedule_receive(&r->x, j, from);
        struct schedule_piece sent = schedule_send(&ranks[from].x, j, r->x.rank);
        assert_int_equal(p.bytes, sent.bytes);
        assert_true(!reduce_bytes || round.action != SCHEDULE_REDUCE_PIECES ||
                    p.bytes <= reduce_bytes);
        size_t stripe = round.shared ? 0 : (size_t)r->x.rank * schedule_stripe(&r->x);
        uint32_t *to = r->out + p.offset / sizeof(uint32_t);
        uint32_t piece[CAPACITY / sizeof(uint32_t)];
        memcpy(piece, ranks[from].board[j % SLOTS] + stripe, p.bytes);
        for (size_t i = 0; i < p.bytes / sizeof(uint32_t); i++) {
            to[i] =
                round.action == SCHEDULE_REDUCE_PIECES && from > 0 ? to[i] + piece[i] : piece[i];
        }
    }
}

static bool all_published(int size, size_t round)
{
    for (int r = 0; r < size; r++) {
        if (ranks[r].published <= round) {
            return false;
        }
    }
    return true;
}

/* Makes one random legal step of a random rank. */
static void step(int size)
{
    struct rank *r = &ranks[draw((uint64_t)size)];
    bool may_publish =
        r->published < r->x.rounds && r->consumed >= schedule_needs(&r->x, r->published);
    bool may_consume = r->consumed < r->published && all_published(size, r->consumed);
    if (may_publish && (!may_consume || draw(2))) {
        publish(r);
    } else if (may_consume) {
        consume(r);
    }
}

static void run(int size)
{
    size_t left = 1;
    while (left > 0) {
        step(size);
        left = 0;
        for (int r = 0; r < size; r++) {
            left += ranks[r].x.rounds - ranks[r].consumed;
        }
    }
}

static void set_up(enum schedule_pattern pattern, int size, size_t count)
{
    for (int r = 0; r < size; r++) {
        memset(&ranks[r], 0, sizeof ranks[r]);
        ranks[r].x = (struct schedule_exchange){.pattern = pattern,
                                                .rank = r,
                                                .size = size,
                                                .root = size / 2,
                                                .unit = sizeof(uint32_t),
                                                .count = count,
                                                .capacity = CAPACITY,
                                                .reduce_bytes = reduce_bytes};
        schedule_plan(&ranks[r].x);
        for (uint32_t i = 0; i < WORLD * ELEMENTS; i++) {
            ranks[r].in[i] = 1000000u * (uint32_t)(r + 1) + i;
        }
    }
}

static uint32_t sum_at(int size, size_t i)
{
    uint32_t sum = 0;
    for (int r = 0; r < size; r++) {
        sum += ranks[r].in[i];
    }
    return sum;
}

/* Returns in *ret what the collective must leave in element i of rank's output; false: the element
 * is not written. */
static bool expected(enum schedule_pattern pattern, int size, size_t count, int rank, size_t i,
                     uint32_t *ret)
{
    int root = size / 2;
    size_t block = count ? i / count : 0;
    size_t within = count ? i % count : 0;
    size_t limit = count * (size_t)size;
    switch (pattern) {
    case SCHEDULE_BARRIER: return false;
    case SCHEDULE_ALL_REDUCE:
    case SCHEDULE_ALL_REDUCE_SPLIT: *ret = sum_at(size, i); return i < count;
    case SCHEDULE_REDUCE: *ret = sum_at(size, i); return i < count && rank == root;
    case SCHEDULE_REDUCE_SCATTER:
        *ret = i < count ? sum_at(size, (size_t)rank * count + i) : 0;
        return i < count;
    case SCHEDULE_BROADCAST: *ret = ranks[root].in[i]; return i < count;
    case SCHEDULE_SCATTER:
        *ret = i < count ? ranks[root].in[(size_t)rank * count + i] : 0;
        return i < count;
    case SCHEDULE_GATHER:
    case SCHEDULE_ALL_GATHER:
        *ret = i < limit ? ranks[block].in[within] : 0;
        return i < limit && (pattern == SCHEDULE_ALL_GATHER || rank == root);
    case SCHEDULE_ALL_TO_ALL:
        *ret = i < limit ? ranks[block].in[(size_t)rank * count + within] : 0;
        return i < limit;
    }
    return false;
}

static void check(enum schedule_pattern pattern, int size, size_t count)
{
    set_up(pattern, size, count);
    run(size);
    for (int r = 0; r < size; r++) {
        for (size_t i = 0; i < (size_t)size * count; i++) {
            uint32_t want = 0;
            if (!expected(pattern, size, count, r, i, &want)) {
                want = 0;
            }
            if (ranks[r].out[i] != want) {
                fail_msg("pattern %d, world %d, count %zu, rank %d, element %zu: %u, not %u",
                         (int)pattern, size, count, r, i, ranks[r].out[i], want);
            }
        }
    }
}

static void every_pattern_in_every_world(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 3, 7, 16, 63, 64, 65, 200, 599};
    for (int pattern = SCHEDULE_BARRIER; pattern <= SCHEDULE_ALL_TO_ALL; pattern++) {
        for (int size = 1; size <= WORLD; size++) {
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                /* the small all-reduce is meant for data that fits one blob, but is correct for
                 * more, too */
                check((enum schedule_pattern)pattern, size, counts[c]);
            }
        }
    }
}

/* A receiver has room for a piece of each peer, and this room does not depend on their number. */
static void what_is_reduced_fits_its_room(void **state)
{
    reduce_bytes = 20;
    every_pattern_in_every_world(state);
    reduce_bytes = 0;
}

static void uneven_counts_are_packed(void **state)
{
    (void)state;
    static const size_t counts[3] = {5, 0, 170};
    for (int r = 0; r < 3; r++) {
        set_up(SCHEDULE_ALL_GATHER, 3, 0);
    }
    for (int r = 0; r < 3; r++) {
        ranks[r].x.out_counts = counts;
        schedule_plan(&ranks[r].x);
    }
    run(3);
    for (int r = 0; r < 3; r++) {
        assert_memory_equal(ranks[r].out, ranks[0].in, 5 * sizeof(uint32_t));
        assert_memory_equal(ranks[r].out + 5, ranks[2].in, 170 * sizeof(uint32_t));
        assert_int_equal(ranks[r].out[175], 0);
    }
}

/* A piece with its header ends in a packet that is worth sending, whatever the network's segments
 * are: a small packet behind each piece took as long as a full one. */
static void split_pieces_fill_packets(void **state)
{
    (void)state;
    enum { HEADER = 64, LARGEST_PACKET = 65536 - 66 };
    static const size_t segments[] = {1398, 1448, 8948, 65483};
    for (size_t bytes = 1 << 20; bytes <= 1 << 28; bytes *= 2) {
        struct schedule_exchange x = {.pattern = SCHEDULE_ALL_REDUCE_SPLIT,
                                      .size = 2,
                                      .unit = 4,
                                      .count = bytes / 4,
                                      .capacity = 1 << 20};
        schedule_plan(&x);
        for (size_t s = 0; s < sizeof segments / sizeof segments[0]; s++) {
            size_t packet = LARGEST_PACKET < segments[s]
                                ? segments[s]
                                : LARGEST_PACKET / segments[s] * segments[s];
            size_t last = (x.piece * x.unit + HEADER) % packet;
            assert_true(last == 0 || last > packet / 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_in_every_world),
        cmocka_unit_test(what_is_reduced_fits_its_room),
        cmocka_unit_test(uneven_counts_are_packed),
        cmocka_unit_test(split_pieces_fill_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
