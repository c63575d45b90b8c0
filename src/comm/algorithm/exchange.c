/* Runs a schedule within a team of ranks: it publishes on boards and links, waits for all ranks,
 * and copies or reduces.
 *
 * A rank that has published round j has consumed round j - 2. So a rank that has seen everybody's
 * round j - 1 may overwrite the slot of round j - 4. Every rank therefore waits for every other
 * rank in each round, even for those that send it nothing; success thus means that all have
 * entered.
 *
 * Layer: comm. Memory: the task's. Thread: the holder of the lane.
 */
#include "comm/algorithm/exchange.h"

#include "comm/health/failure.h"
#include "comm/shm/line.h"
#include "comm/state/bell.h"
#include "comm/state/call_log.h"
#include "comm/tcp/link.h"

#include <assert.h>
#include <string.h>

static int exchange_step(struct muster_comm *comm, struct task *task, struct muster_err *err);

void exchange_init(struct exchange *x, const struct team *team, enum schedule_pattern pattern,
                   size_t count, size_t unit, size_t capacity)
{
    assert(team->size > 0);
    x->plan = (struct schedule_exchange){
        .pattern = pattern,
        .rank = team->index,
        .size = team->size,
        .unit = unit,
        .count = count,
        .capacity = capacity,
        .reduce_bytes = team->links ? LINK_PIECE_BYTES : 0,
    };
    x->team = team;
    x->begun = false;
    x->at = (struct schedule_rounds){0};
    x->reduce = NULL;
}

static void set_up(struct muster_comm *comm, struct task *task, enum schedule_pattern pattern,
                   size_t count, size_t unit)
{
    size_t capacity = task->lane == LANE_SIDE ? SIDE_BYTES : comm->capacity;
    exchange_init(&task->exchange, &comm->everyone, pattern, count, unit, capacity);
    task->linked = &comm->everyone;
}

void exchange_start(struct muster_comm *comm, struct task *task, enum schedule_pattern pattern)
{
    const struct prepared *call = &task->call;
    struct exchange *x = &task->exchange;
    set_up(comm, task, pattern, call->count, call->unit);
    x->plan.root = call->peer;
    x->plan.in_counts = call->in_counts;
    x->plan.out_counts = call->out_counts;
    schedule_plan(&x->plan);
    x->in = call->kind == MUSTER_BROADCAST ? call->out : call->in;
    x->out = call->out;
    x->reduce = call->kernels.reduce;
    x->divisor = call->divisor;
    task->step = exchange_step;
}

/* Gathers every rank's task->words into lane->words: the first stage of calls that must agree
 * first. */
static void exchange_words(struct muster_comm *comm, struct task *task)
{
    struct exchange *x = &task->exchange;
    set_up(comm, task, SCHEDULE_ALL_GATHER, COMM_WORDS, sizeof(uint64_t));
    schedule_plan(&x->plan);
    x->in = (const char *)task->words;
    x->out = (char *)comm->lanes[task->lane].words;
}

enum { ROUNDS_WORD, SENDS_WORD, RECEIVES_WORD };

static uint64_t pair_digest(int from, int to, size_t count)
{
    uint64_t mix = ((uint64_t)from << 32 | (uint64_t)to) * 0x9e3779b97f4a7c15u ^ count;
    mix = (mix ^ mix >> 29) * 0xbf58476d1ce4e5b9u;
    return mix ^ mix >> 32;
}

/* Writes sums of what this rank will send and receive. Over all ranks both sums are equal if each
 * pair of ranks agrees; otherwise they differ, except in one case of 2^64. */
static void tell_counts(const struct muster_comm *comm, const struct prepared *call,
                        uint64_t *words)
{
    words[SENDS_WORD] = words[RECEIVES_WORD] = 0;
    for (int r = 0; r < comm->size; r++) {
        words[SENDS_WORD] += pair_digest(comm->rank, r, call->in_counts[r]);
        words[RECEIVES_WORD] += pair_digest(r, comm->rank, call->out_counts[r]);
    }
}

/* The number of rounds of an all-to-all with counts depends on all counts, which no rank knows. */
static int uneven_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    int r = exchange_step(comm, task, err);
    if (r <= 0) {
        return r;
    }
    uint64_t most = 0, sends = 0, receives = 0;
    for (int peer = 0; peer < comm->size; peer++) {
        const uint64_t *words = &comm->lanes[task->lane].words[peer * COMM_WORDS];
        most = words[ROUNDS_WORD] > most ? words[ROUNDS_WORD] : most;
        sends += words[SENDS_WORD];
        receives += words[RECEIVES_WORD];
    }
    if (sends != receives) {
        return muster_fail(err, MUSTER_EMISMATCH,
                           "all_to_all with counts: what some rank sends is not what another "
                           "expects of it (in_counts[r] here must be out_counts[here] at r)");
    }
    exchange_start(comm, task, SCHEDULE_ALL_TO_ALL);
    task->exchange.plan.rounds = most;
    return exchange_step(comm, task, err);
}

void exchange_start_uneven(struct muster_comm *comm, struct task *task)
{
    exchange_start(comm, task, SCHEDULE_ALL_TO_ALL);
    task->words[ROUNDS_WORD] = task->exchange.plan.rounds;
    tell_counts(comm, &task->call, task->words);
    exchange_words(comm, task);
    task->step = uneven_step;
}

static struct board *board_of(struct muster_comm *comm, const struct task *task,
                              const struct exchange *x, int index, size_t round)
{
    size_t slot = (x->base + round) % BOARD_SLOTS;
    int local = comm->peers[x->team->ranks[index]].local;
    return segment_board(&comm->segment, local, task->lane, slot);
}

static uint64_t flag_of(const struct task *task, const struct exchange *x, size_t round)
{
    return segment_flag(x->base + (uint32_t)round + 1, task->signature);
}

static bool is_here(const struct muster_comm *comm, const struct exchange *x, int index)
{
    return comm->peers[x->team->ranks[index]].local >= 0;
}

static void write_board(struct muster_comm *comm, struct task *task, struct exchange *x,
                        size_t round, struct schedule_round how, const char *source)
{
    const struct schedule_exchange *plan = &x->plan;
    struct board *board = board_of(comm, task, x, plan->rank, round);
    assert(round <= x->at.consumed + 1); /* otherwise a slot in use would be overwritten */
    if (how.shared) {
        struct schedule_piece p = schedule_shared(plan, round);
        if (p.bytes > 0) {
            memcpy(board_blob(board, p.bytes), source + p.offset, p.bytes);
        }
    }
    for (int to = 0; to < plan->size && !how.shared; to++) {
        struct schedule_piece p = schedule_send(plan, round, to);
        if (to != plan->rank && p.bytes > 0 && is_here(comm, x, to)) {
            memcpy(board->data + (size_t)to * schedule_stripe(plan), source + p.offset, p.bytes);
        }
    }
    atomic_store_explicit(&board->flag, flag_of(task, x, round), memory_order_release);
    bell_wake_locals(comm);
}

static void publish(struct muster_comm *comm, struct task *task, struct exchange *x, size_t round)
{
    struct schedule_round how = schedule_round(&x->plan, round);
    const char *source = how.from_out ? x->out : x->in;
    if (x->team->boards) {
        write_board(comm, task, x, round, how, source);
    }
    if (x->team->links) {
        link_publish(comm, task, x, round, source);
    }
}

/* Returns 1 when all have published this round. */
static int arrived(struct muster_comm *comm, struct task *task, struct exchange *x, size_t round,
                   struct muster_err *err)
{
    uint64_t want = flag_of(task, x, round);
    for (int from = 0; x->team->boards && from < x->plan.size; from++) {
        if (from == x->plan.rank || !is_here(comm, x, from)) {
            continue;
        }
        struct board *board = board_of(comm, task, x, from, round);
        uint64_t flag = atomic_load_explicit(&board->flag, memory_order_acquire);
        if (flag != want) {
            task->waiting = x->team->ranks[from];
            bool other_call = flag >> 32 == want >> 32;
            return other_call ? failure_mismatch(comm, task, task->waiting, err) : 0;
        }
    }
    int r = x->team->links ? link_arrived(comm, task, x, round, err) : 1;
    return r == MUSTER_EMISMATCH ? failure_mismatch(comm, task, task->waiting, err) : r;
}

/* Returns the address of a peer's piece of this round; NULL: the piece is in its place already. */
static char *source_of(struct muster_comm *comm, struct task *task, struct exchange *x,
                       size_t round, struct schedule_round how, int from)
{
    if (from == x->plan.rank) {
        return (char *)(how.from_out ? x->out : x->in) +
               schedule_send(&x->plan, round, from).offset;
    }
    if (!is_here(comm, x, from)) {
        return link_piece(comm, task, x, round, from);
    }
    struct board *board = board_of(comm, task, x, from, round);
    return how.shared ? board_blob(board, schedule_receive(&x->plan, round, from).bytes)
                      : board->data + (size_t)x->plan.rank * schedule_stripe(&x->plan);
}

/* Whether to claim the lines that were read from this rank, as line_claim says. */
static bool claims(const struct muster_comm *comm, const struct exchange *x,
                   struct schedule_round how, int from, size_t bytes)
{
    bool only_reader = !how.shared || comm->local_size == 2;
    return bytes >= LINE_CLAIM_FROM_BYTES && is_here(comm, x, from) && from != x->plan.rank &&
           only_reader && comm->tuning->claims;
}

static void copy_round(struct muster_comm *comm, struct task *task, struct exchange *x,
                       size_t round, struct schedule_round how)
{
    for (int from = 0; from < x->plan.size; from++) {
        struct schedule_piece p = schedule_receive(&x->plan, round, from);
        if (p.bytes == 0) {
            continue;
        }
        char *source = source_of(comm, task, x, round, how, from);
        char *to = x->out + p.offset;
        if (source && source != to) {
            line_take(to, source, p.bytes, claims(comm, x, how, from, p.bytes));
        }
    }
}

static void reduce_round(struct muster_comm *comm, struct task *task, struct exchange *x,
                         size_t round, struct schedule_round how)
{
    struct schedule_piece p = schedule_receive(&x->plan, round, x->plan.rank);
    if (p.bytes == 0) {
        return;
    }
    assert(x->reduce && x->divisor >= 1 && x->plan.size <= MUSTER_MAX_RANKS);
    const void *sources[MUSTER_MAX_RANKS];
    for (int from = 0; from < x->plan.size; from++) {
        sources[from] = source_of(comm, task, x, round, how, from);
    }
    x->reduce(x->out + p.offset, sources, x->plan.size, p.bytes / x->plan.unit, x->divisor);
    for (int from = 0; from < x->plan.size; from++) {
        if (claims(comm, x, how, from, p.bytes)) {
            line_claim((void *)(uintptr_t)sources[from], p.bytes);
        }
    }
}

static void consume(struct muster_comm *comm, struct task *task, struct exchange *x, size_t round)
{
    struct schedule_round how = schedule_round(&x->plan, round);
    switch (how.action) {
    case SCHEDULE_NOTHING: break;
    case SCHEDULE_COPY: copy_round(comm, task, x, round, how); break;
    case SCHEDULE_REDUCE_PIECES: reduce_round(comm, task, x, round, how); break;
    }
}

static void begin(struct muster_comm *comm, struct task *task, struct exchange *x)
{
    assert(x->plan.size == x->team->size && x->at.published == 0 && x->at.consumed == 0);
    x->begun = true;
    x->at.rounds = x->plan.rounds;
    x->base = comm->lanes[task->lane].round;
    x->link_base = task->link_rounds;
    if (!task->begun) {
        call_log_begin(comm, task);
    }
}

/* Rounds on boards are counted through all calls, because the calls share the slots; rounds on
 * links are counted within a call, because not all ranks of a host have links in it. */
static void end(struct muster_comm *comm, struct task *task, const struct exchange *x)
{
    uint32_t rounds = (uint32_t)x->plan.rounds;
    comm->lanes[task->lane].round += x->team->boards ? rounds : 0;
    task->link_rounds += x->team->links ? rounds : 0;
}

int exchange_advance(struct muster_comm *comm, struct task *task, struct exchange *x,
                     struct muster_err *err)
{
    if (!x->begun) {
        begin(comm, task, x);
    }
    for (;;) {
        int r;
        assert(x->at.consumed <= x->at.published && x->at.published <= x->at.rounds);
        switch (schedule_next(&x->at, schedule_needs(&x->plan, x->at.published))) {
        case SCHEDULE_PUBLISH: publish(comm, task, x, x->at.published++); break;
        case SCHEDULE_CONSUME:
            r = arrived(comm, task, x, x->at.consumed, err);
            if (r <= 0) {
                return r;
            }
            consume(comm, task, x, x->at.consumed++);
            task->moved = true;
            break;
        case SCHEDULE_DONE: end(comm, task, x); return 1;
        }
    }
}

static int exchange_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    return exchange_advance(comm, task, &task->exchange, err);
}
