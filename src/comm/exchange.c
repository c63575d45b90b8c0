/* Runs a schedule: publish on boards and links, wait for all, copy or fold.
 *
 * A rank that has published round j has consumed round j - 2; so who has seen everybody's round j -
 * 1 may overwrite the slot of round j - 4. Every rank therefore waits for every other in each
 * round, also for those that send it nothing, which makes success mean that all have entered.
 *
 * Layer: comm. Memory: the task's. Thread: the holder of the lane.
 */
#include "comm/internal.h"

#include <assert.h>
#include <string.h>

#include "comm/link.h"
#include "comm/types.h"

enum { CLAIM_FROM_BYTES = 512, COPY_TILE = 4096 };

static void set_up(struct muster_comm *comm, struct task *task, enum schedule_pattern pattern,
                   size_t count, size_t unit)
{
    struct exchange *x = &task->exchange;
    x->plan = (struct schedule_exchange){
        .pattern = pattern,
        .rank = comm->rank,
        .size = comm->size,
        .unit = unit,
        .count = count,
        .capacity = task->lane == LANE_SIDE ? SIDE_BYTES : comm->capacity,
    };
    x->begun = false;
    x->published = 0;
    x->consumed = 0;
    x->fold = NULL;
}

void exchange_start(struct muster_comm *comm, struct task *task, enum schedule_pattern pattern)
{
    const struct muster_call *call = &task->call;
    struct exchange *x = &task->exchange;
    set_up(comm, task, pattern, call->count, task->unit);
    x->plan.root = call->peer;
    x->plan.in_counts = call->in_counts;
    x->plan.out_counts = call->out_counts;
    schedule_plan(&x->plan);
    x->in = call->kind == MUSTER_BROADCAST ? call->out : call->in;
    x->out = call->out;
    if (types_reduces(call->kind)) {
        x->fold = reduce_find(call->type, call->op);
    }
    x->divisor = call->op == MUSTER_AVG ? comm->size : 1;
    task->step = exchange_step;
}

void exchange_words(struct muster_comm *comm, struct task *task)
{
    struct exchange *x = &task->exchange;
    set_up(comm, task, SCHEDULE_ALL_GATHER, COMM_WORDS, sizeof(uint64_t));
    schedule_plan(&x->plan);
    x->in = (const char *)task->words;
    x->out = (char *)comm->lanes[task->lane].words;
}

void exchange_barrier(struct muster_comm *comm, struct task *task)
{
    set_up(comm, task, SCHEDULE_BARRIER, 0, 1);
    schedule_plan(&task->exchange.plan);
    task->step = exchange_step;
}

/* How many rounds an all-to-all with counts takes depends on all of them, which no rank knows. */
static int uneven_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    int rc = exchange_step(comm, task, err);
    if (rc <= 0) {
        return rc;
    }
    uint64_t most = 0;
    for (int r = 0; r < comm->size; r++) {
        uint64_t rounds = comm->lanes[task->lane].words[r * COMM_WORDS];
        most = rounds > most ? rounds : most;
    }
    exchange_start(comm, task, SCHEDULE_ALL_TO_ALL);
    task->exchange.plan.rounds = most;
    return exchange_step(comm, task, err);
}

void exchange_start_uneven(struct muster_comm *comm, struct task *task)
{
    exchange_start(comm, task, SCHEDULE_ALL_TO_ALL);
    task->words[0] = task->exchange.plan.rounds;
    exchange_words(comm, task);
    task->step = uneven_step;
}

static struct board *board_of(struct muster_comm *comm, const struct task *task, int rank,
                              size_t round)
{
    size_t slot = (task->exchange.base + round) % BOARD_SLOTS;
    return segment_board(&comm->segment, comm->peers[rank].local, task->lane, slot);
}

static uint64_t flag_of(const struct task *task, size_t round)
{
    return comm_flag(task->exchange.base + (uint32_t)round + 1, task->signature);
}

static void write_board(struct muster_comm *comm, struct task *task, size_t round,
                        struct schedule_round how, const char *source)
{
    const struct schedule_exchange *plan = &task->exchange.plan;
    struct board *board = board_of(comm, task, comm->rank, round);
    assert(round <= task->exchange.consumed + 1); /* or a slot in use would be overwritten */
    if (how.shared) {
        struct schedule_piece p = schedule_shared(plan, round);
        if (p.bytes > 0) {
            memcpy(board_blob(board, p.bytes), source + p.offset, p.bytes);
        }
    } else {
        for (int l = 0; l < comm->local_size; l++) {
            int to = comm->locals[l];
            struct schedule_piece p = schedule_send(plan, round, to);
            if (to != comm->rank && p.bytes > 0) {
                memcpy(board->data + (size_t)to * schedule_stripe(plan), source + p.offset,
                       p.bytes);
            }
        }
    }
    atomic_store_explicit(&board->flag, flag_of(task, round), memory_order_release);
    wait_wake_locals(comm);
}

static int publish(struct muster_comm *comm, struct task *task, size_t round,
                   struct muster_err *err)
{
    struct exchange *x = &task->exchange;
    struct schedule_round how = schedule_round(&x->plan, round);
    const char *source = how.from_out ? x->out : x->in;
    if (comm->local_size > 1) {
        write_board(comm, task, round, how, source);
    }
    return comm->all_local ? 0 : link_publish(comm, task, round, source, err);
}

/* 1: all have published this round. */
static int arrived(struct muster_comm *comm, struct task *task, size_t round,
                   struct muster_err *err)
{
    uint64_t want = flag_of(task, round);
    for (int l = 0; l < comm->local_size; l++) {
        if (l == comm->local_rank) {
            continue;
        }
        struct board *board = board_of(comm, task, comm->locals[l], round);
        uint64_t flag = atomic_load_explicit(&board->flag, memory_order_acquire);
        if (flag != want) {
            task->waiting = comm->locals[l];
            bool other_call = flag >> 32 == want >> 32;
            return other_call ? failure_mismatch(comm, task, comm->locals[l], err) : 0;
        }
    }
    return comm->all_local ? 1 : link_arrived(comm, task, round, err);
}

/* Where a peer's piece of this round lies; NULL: in its place already. */
static char *source_of(struct muster_comm *comm, struct task *task, size_t round,
                       struct schedule_round how, int from)
{
    struct exchange *x = &task->exchange;
    if (from == comm->rank) {
        return (char *)(how.from_out ? x->out : x->in) +
               schedule_send(&x->plan, round, from).offset;
    }
    if (comm->peers[from].local < 0) {
        return link_piece(comm, task, round, from);
    }
    struct board *board = board_of(comm, task, from, round);
    return how.shared ? board_blob(board, schedule_receive(&x->plan, round, from).bytes)
                      : board->data + (size_t)comm->rank * schedule_stripe(&x->plan);
}

static bool only_reader(const struct muster_comm *comm, struct schedule_round how, int from)
{
    return comm->peers[from].local >= 0 && from != comm->rank &&
           (!how.shared || comm->local_size == 2);
}

static void copy_piece(char *to, char *from, size_t bytes, bool claim)
{
    size_t tile = claim ? COPY_TILE : bytes;
    for (size_t at = 0; at < bytes; at += tile) {
        size_t length = bytes - at < tile ? bytes - at : tile;
        memcpy(to + at, from + at, length);
        if (claim) {
            comm_claim(from + at, length);
        }
    }
}

static void copy_round(struct muster_comm *comm, struct task *task, size_t round,
                       struct schedule_round how)
{
    struct exchange *x = &task->exchange;
    for (int from = 0; from < comm->size; from++) {
        struct schedule_piece p = schedule_receive(&x->plan, round, from);
        if (p.bytes == 0) {
            continue;
        }
        char *source = source_of(comm, task, round, how, from);
        char *to = x->out + p.offset;
        if (source && source != to) {
            bool claim = p.bytes >= CLAIM_FROM_BYTES && only_reader(comm, how, from);
            copy_piece(to, source, p.bytes, claim);
        }
    }
}

static void fold_round(struct muster_comm *comm, struct task *task, size_t round,
                       struct schedule_round how)
{
    struct exchange *x = &task->exchange;
    struct schedule_piece p = schedule_receive(&x->plan, round, comm->rank);
    if (p.bytes == 0) {
        return;
    }
    const void *sources[COMM_MAX_RANKS];
    for (int from = 0; from < comm->size; from++) {
        sources[from] = source_of(comm, task, round, how, from);
    }
    x->fold(x->out + p.offset, sources, comm->size, p.bytes / x->plan.unit, x->divisor);
    for (int from = 0; from < comm->size && p.bytes >= CLAIM_FROM_BYTES; from++) {
        if (only_reader(comm, how, from)) {
            comm_claim((void *)sources[from], p.bytes);
        }
    }
}

static void consume(struct muster_comm *comm, struct task *task, size_t round)
{
    struct schedule_round how = schedule_round(&task->exchange.plan, round);
    switch (how.action) {
    case SCHEDULE_NOTHING: break;
    case SCHEDULE_COPY: copy_round(comm, task, round, how); break;
    case SCHEDULE_FOLD: fold_round(comm, task, round, how); break;
    }
}

int exchange_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct exchange *x = &task->exchange;
    struct lane *lane = &comm->lanes[task->lane];
    if (!x->begun) {
        x->begun = true;
        x->base = lane->round;
        call_begin(comm, task);
    }
    while (x->consumed < x->plan.rounds) {
        while (x->published < x->plan.rounds && x->published <= x->consumed + 1) {
            int rc = publish(comm, task, x->published, err);
            if (rc < 0) {
                return rc;
            }
            x->published++;
        }
        int rc = arrived(comm, task, x->consumed, err);
        if (rc <= 0) {
            return rc;
        }
        consume(comm, task, x->consumed++);
    }
    lane->round += (uint32_t)x->plan.rounds;
    return 1;
}
