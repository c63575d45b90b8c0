/* Gather-reduce on one host, for the smallest vectors: every rank publishes its own vector and
 * reduces all of them. Two lines of memory cross between two cores, one in each direction; each
 * carries the data together with its flag.
 *
 * Layer: comm. Memory: the task's. Thread: the holder of the lane, or the caller's (fast_path.h).
 */
#include "comm/algorithm/small.h"

#include "comm/algorithm/fast_path.h"
#include "comm/algorithm/rounds.h"
#include "comm/progress/progress.h"
#include "comm/shm/line.h"

#include <string.h>

enum { WORD = 4 };

/* Copies little data word by word: the reduce of the call before has written it by words, and a
 * wider load would wait until those stores have left the core. */
static void put(struct board *board, const char *in, size_t bytes)
{
    if (bytes > sizeof board->little || bytes % WORD != 0) {
        memcpy(board_blob(board, bytes), in, bytes);
        return;
    }
    for (size_t at = 0; at < bytes; at += WORD) {
        uint32_t word;
        memcpy(&word, in + at, WORD);
        atomic_store_explicit((_Atomic uint32_t *)(void *)(board->little + at), word,
                              memory_order_relaxed);
    }
}

ROUNDS_INLINE void publish(struct muster_comm *comm, void *own, size_t round)
{
    const struct small *s = own;
    size_t bytes = s->call->bytes;
    struct board *mine = fast_board(comm, comm->rank, s->base + (uint32_t)round);
    put(mine, s->in, bytes);
    fast_publish(comm, s->base, s->signature, mine);
    if (bytes > sizeof mine->little && comm->tuning->demotes && !comm->oversubscribed) {
        line_demote(mine, sizeof *mine + bytes);
    }
}

/* Prepares the sources first: work that is done before the others have published costs no time. */
ROUNDS_INLINE bool wait(struct muster_comm *comm, void *own, size_t round, int spins)
{
    const struct small *s = own;
    uint32_t turn = s->base + (uint32_t)round;
    for (int r = 0; r < comm->size; r++) {
        s->sources[r] = board_blob(fast_board(comm, r, turn), s->call->bytes);
    }
    s->sources[comm->rank] = s->in;
    return fast_wait(comm, turn, s->signature, spins);
}

ROUNDS_INLINE int consume(struct muster_comm *comm, void *own, size_t round)
{
    const struct small *s = own;
    const struct prepared *call = s->call;
    call->kernels.reduce(s->out, s->sources, comm->size, call->count, call->divisor);
    if (comm->size == 2 && comm->tuning->claims && call->bytes >= LINE_CLAIM_FROM_BYTES) {
        line_claim(fast_board(comm, 1 - comm->rank, s->base + (uint32_t)round)->data, call->bytes);
    }
    return 1;
}

static const struct rounds_way way = {
    .slots = 1, .publish = publish, .wait = wait, .consume = consume};

static int small_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct small *s = &way_of(task)->small;
    const void *sources[MUSTER_MAX_RANKS];
    if (s->at.published == 0) {
        s->base = comm->lanes[LANE_MAIN].round;
        s->signature = task->signature;
        call_log_begin(comm, task);
    }
    s->sources = sources;
    if (rounds_run(comm, &way, s, &s->at, 0) == ROUNDS_WAITING) {
        return fast_missing(comm, task, s->base, err);
    }
    comm->lanes[LANE_MAIN].round = s->base + 1;
    return 1;
}

void small_start(struct muster_comm *comm, struct task *task)
{
    assert(comm->all_local && comm->size > 1 && task->call.bytes <= BOARD_BYTES);
    way_of(task)->small = (struct small){
        .call = &task->call, .in = task->call.in, .out = task->call.out, .at = {.rounds = 1}};
    task->step = small_step;
}

static __attribute__((noinline)) int go_on(struct muster_comm *comm, const void *in, void *out,
                                           struct fast_path quick, struct muster_err *err)
{
    struct task task;
    fast_task(comm, in, out, quick, &task);
    small_start(comm, &task);
    way_of(&task)->small.base = quick.round;
    way_of(&task)->small.signature = quick.signature;
    way_of(&task)->small.at.published = 1;
    return progress_run(comm, &task, err);
}

int small_run(struct muster_comm *comm, const void *in, void *out, struct muster_err *err)
{
    const void *sources[MUSTER_MAX_RANKS];
    struct fast_path quick;
    if (!fast_enter(comm, &quick)) {
        return fast_refuse(comm, in, out, err);
    }
    struct small s = {.call = &way_plan(comm)->call,
                      .in = in,
                      .out = out,
                      .sources = sources,
                      .signature = quick.signature,
                      .base = quick.round};
    struct schedule_rounds at = {.rounds = 1};
    if (rounds_run(comm, &way, &s, &at, FAST_SPINS) == ROUNDS_WAITING) {
        return go_on(comm, in, out, quick, err);
    }
    fast_leave(comm, quick, quick.round + 1);
    return 0;
}
