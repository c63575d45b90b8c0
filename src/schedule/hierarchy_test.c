/* The checker: runs a collective between hosts for all ranks of a world in one process, stage by
 * stage, and compares with the definition of the collective. Worlds up to 9, hosts of all sizes. */
#include "schedule/hierarchy.h"

#include "base/testing/test.h"

enum { WORLD = 9, ELEMENTS = 100, PART = 12, CAPACITY = 256 };

struct rank {
    struct schedule_hierarchy plan;
    struct schedule_stage stage;
    struct schedule_exchange x;
    uint32_t in[WORLD * ELEMENTS];
    uint32_t out[WORLD * ELEMENTS];
    uint32_t work[3 * PART];
    char board[WORLD][CAPACITY]; /* a piece for each rank of the team */
};

static struct rank ranks[WORLD];
static struct schedule_hosts hosts;
static size_t block_counts[WORLD];
static uint64_t seed = 1;

static uint64_t draw(uint64_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % limit;
}

static uint32_t *place(struct rank *r, struct schedule_place at)
{
    uint32_t *base = at.buffer == SCHEDULE_IN    ? r->in
                     : at.buffer == SCHEDULE_OUT ? r->out
                                                 : r->work;
    return base + at.start;
}

/* ---- one stage, of all ranks of a team ---- */

static void prepare(struct rank *r, int size, int index)
{
    const struct schedule_stage *s = &r->stage;
    bool both = s->pattern == SCHEDULE_ALL_TO_ALL;
    r->x = (struct schedule_exchange){.pattern = s->pattern,
                                      .rank = index,
                                      .size = size,
                                      .root = s->root,
                                      .unit = sizeof(uint32_t),
                                      .count = s->count,
                                      .capacity = CAPACITY};
    if (s->blocks) {
        r->x.in_counts = s->counts;
        r->x.in_starts = s->starts;
        r->x.out_counts = both ? s->out_counts : s->counts;
        r->x.out_starts = both ? s->out_starts : s->starts;
    }
    schedule_plan(&r->x);
}

static void publish(struct rank *r, size_t round)
{
    struct schedule_place from =
        schedule_round(&r->x, round).from_out ? r->stage.to : r->stage.from;
    for (int to = 0; to < r->x.size; to++) {
        struct schedule_piece p = schedule_send(&r->x, round, to);
        assert_true(p.bytes <= CAPACITY);
        memcpy(r->board[to], (char *)place(r, from) + p.offset, p.bytes);
    }
}

static void consume(struct rank *r, struct rank *const *team, size_t round)
{
    struct schedule_round how = schedule_round(&r->x, round);
    for (int from = 0; from < r->x.size && how.action != SCHEDULE_NOTHING; from++) {
        struct schedule_piece p = schedule_receive(&r->x, round, from);
        assert_int_equal(p.bytes, schedule_send(&team[from]->x, round, r->x.rank).bytes);
        uint32_t *to = place(r, r->stage.to) + p.offset / sizeof(uint32_t);
        uint32_t piece[CAPACITY / sizeof(uint32_t)];
        memcpy(piece, team[from]->board[r->x.rank], p.bytes);
        for (size_t i = 0; i < p.bytes / sizeof(uint32_t); i++) {
            to[i] = how.action == SCHEDULE_REDUCE_PIECES && from > 0 ? to[i] + piece[i] : piece[i];
        }
    }
}

/* Returns false if this phase of the chunk has no k-th stage. */
static bool run_stage(struct rank *const *team, int size, enum schedule_phase phase, size_t chunk,
                      int k)
{
    for (int i = 0; i < size; i++) {
        bool there = schedule_hierarchy_stage(&team[i]->plan, phase, chunk, k, &team[i]->stage);
        if (!there) {
            assert_int_equal(i, 0);
            return false;
        }
        prepare(team[i], size, i);
        assert_int_equal(team[i]->x.pattern, team[0]->x.pattern);
        assert_int_equal(team[i]->x.rounds, team[0]->x.rounds);
    }
    for (size_t round = 0; round < team[0]->x.rounds; round++) {
        for (int i = 0; i < size; i++) {
            publish(team[i], round);
        }
        for (int i = 0; i < size; i++) {
            consume(team[i], team, round);
        }
    }
    return true;
}

static void run_teams(enum schedule_phase phase, size_t chunk)
{
    bool across = phase == SCHEDULE_ACROSS;
    for (int t = 0; t < (across ? hosts.leaders : hosts.hosts); t++) {
        struct rank *team[WORLD];
        int size = 0;
        for (int i = 0; i < WORLD; i++) {
            int rank = !across           ? schedule_host_rank(&hosts, t, i)
                       : i < hosts.hosts ? schedule_host_rank(&hosts, i, t)
                                         : -1;
            if (rank >= 0) {
                team[size++] = &ranks[rank];
            }
        }
        for (int k = 0; run_stage(team, size, phase, chunk, k); k++) {
        }
    }
}

static void run_phase(enum schedule_phase phase, size_t slot)
{
    if (slot >= (size_t)phase && slot - (size_t)phase < ranks[0].plan.chunks) {
        run_teams(phase, slot - (size_t)phase);
    }
}

/* Phases that run at the same time may run in any order. */
static void run(void)
{
    for (size_t slot = 0; slot < schedule_hierarchy_slots(&ranks[0].plan); slot++) {
        bool first = draw(2);
        if (first) {
            run_phase(SCHEDULE_ACROSS, slot);
        }
        run_phase(SCHEDULE_UP, slot);
        run_phase(SCHEDULE_DOWN, slot);
        if (!first) {
            run_phase(SCHEDULE_ACROSS, slot);
        }
    }
}

/* ---- worlds ---- */

static void set_up(enum schedule_pattern pattern, const int *lowest, int size, size_t count,
                   const size_t *counts)
{
    schedule_hosts_init(&hosts, lowest, size);
    for (int r = 0; r < size; r++) {
        memset(&ranks[r], 0, sizeof ranks[r]);
        ranks[r].plan = (struct schedule_hierarchy){.hosts = &hosts,
                                                    .pattern = pattern,
                                                    .rank = r,
                                                    .root = size / 2,
                                                    .unit = sizeof(uint32_t),
                                                    .count = count,
                                                    .counts = counts,
                                                    .part = PART};
        schedule_hierarchy_plan(&ranks[r].plan);
        for (uint32_t i = 0; i < WORLD * ELEMENTS; i++) {
            ranks[r].in[i] = 1000000u * (uint32_t)(r + 1) + i;
        }
        if (pattern == SCHEDULE_BROADCAST) {
            memcpy(ranks[r].out, ranks[r].in, sizeof ranks[r].in); /* in place */
        }
    }
}

static uint32_t sum_at(size_t i)
{
    uint32_t sum = 0;
    for (int r = 0; r < hosts.size; r++) {
        sum += ranks[r].in[i];
    }
    return sum;
}

/* Finds the element of a gathered whole; false: i is past the end. */
static bool gathered(size_t count, const size_t *counts, size_t i, uint32_t *ret)
{
    for (int r = 0; r < hosts.size; r++) {
        size_t block = counts ? counts[r] : count;
        if (i < block) {
            *ret = ranks[r].in[i];
            return true;
        }
        i -= block;
    }
    return false;
}

/* Finds what the collective must leave in element i of rank's output; false: the element is not
 * written. */
static bool expected(enum schedule_pattern pattern, size_t count, const size_t *counts, int rank,
                     size_t i, uint32_t *ret)
{
    int root = hosts.size / 2;
    if (pattern == SCHEDULE_ALL_REDUCE || (pattern == SCHEDULE_REDUCE && rank == root)) {
        *ret = sum_at(i);
        return i < count;
    }
    if (pattern == SCHEDULE_REDUCE_SCATTER) {
        *ret = i < count ? sum_at((size_t)rank * count + i) : 0;
        return i < count;
    }
    if (pattern == SCHEDULE_BROADCAST) {
        *ret = ranks[i < count ? root : rank].in[i];
        return true;
    }
    return pattern == SCHEDULE_ALL_GATHER && gathered(count, counts, i, ret);
}

/* A rank that waits for frames of other hosts, in a call in which none are sent to it, would
 * mistake a rank that has finished the call and left for one that never entered. */
static void check_crosses(const struct schedule_hierarchy *plan)
{
    struct schedule_stage stage;
    bool crosses = schedule_hierarchy_stage(plan, SCHEDULE_ACROSS, 0, 0, &stage);
    assert_int_equal(schedule_hierarchy_crosses(plan), crosses);
    for (size_t chunk = 1; chunk < plan->chunks && !crosses; chunk++) {
        assert_false(schedule_hierarchy_stage(plan, SCHEDULE_ACROSS, chunk, 0, &stage));
    }
}

static void check(enum schedule_pattern pattern, const int *lowest, int size, size_t count,
                  const size_t *counts)
{
    set_up(pattern, lowest, size, count, counts);
    for (int r = 0; r < size; r++) {
        check_crosses(&ranks[r].plan);
    }
    run();
    for (int r = 0; r < size; r++) {
        for (size_t i = 0; i < WORLD * ELEMENTS; i++) {
            uint32_t want = 0;
            if (!expected(pattern, count, counts, r, i, &want)) {
                want = 0;
            }
            if (ranks[r].out[i] != want) {
                fail_msg("pattern %d, world %d on %d hosts, count %zu, rank %d, element %zu: %u, "
                         "not %u",
                         (int)pattern, size, hosts.hosts, count, r, i, ranks[r].out[i], want);
            }
        }
    }
}

/* Draws a random way to put ranks on hosts. */
static void draw_hosts(int size, int *ret_lowest)
{
    int most = 2 + (int)draw((uint64_t)size - 1);
    for (int r = 0; r < size; r++) {
        ret_lowest[r] = (int)draw((uint64_t)most);
    }
    for (int r = size - 1; r >= 0; r--) {
        int first = 0;
        while (ret_lowest[first] != ret_lowest[r]) {
            first++;
        }
        ret_lowest[r] = -1 - first; /* negative: this is not the mark of a host any more */
        for (int other = 0; other < r; other++) {
            assert_true(ret_lowest[other] >= 0);
        }
    }
    for (int r = 0; r < size; r++) {
        ret_lowest[r] = -1 - ret_lowest[r];
    }
}

static void every_pattern_on_hosts_of_all_sizes(void **state)
{
    (void)state;
    static const enum schedule_pattern patterns[] = {SCHEDULE_BARRIER,    SCHEDULE_ALL_REDUCE,
                                                     SCHEDULE_REDUCE,     SCHEDULE_BROADCAST,
                                                     SCHEDULE_ALL_GATHER, SCHEDULE_REDUCE_SCATTER};
    static const size_t counts[] = {0, 1, 7, 13, 48, 100};
    int checked = 0;
    for (int size = 3; size <= WORLD; size++) {
        for (int turn = 0; turn < 40; turn++) {
            int lowest[WORLD];
            draw_hosts(size, lowest);
            schedule_hosts_init(&hosts, lowest, size);
            for (size_t p = 0; schedule_hosts_mixed(&hosts) && p < 6; p++) {
                check(patterns[p], lowest, size, counts[draw(6)], NULL);
                checked++;
            }
        }
    }
    assert_true(checked > 500);
}

static void uneven_blocks(void **state)
{
    (void)state;
    for (int turn = 0; turn < 100; turn++) {
        int lowest[WORLD];
        int size = 3 + (int)draw(WORLD - 2);
        draw_hosts(size, lowest);
        schedule_hosts_init(&hosts, lowest, size);
        for (int r = 0; r < size; r++) {
            block_counts[r] = draw(2) ? draw(ELEMENTS) : 0;
        }
        if (schedule_hosts_mixed(&hosts)) {
            check(SCHEDULE_ALL_GATHER, lowest, size, 0, block_counts);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_on_hosts_of_all_sizes),
        cmocka_unit_test(uneven_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
