/* The shortest way for the smallest vectors: every rank publishes its own and folds all. Two lines
 * of memory cross between two cores, one each way, and they carry the payload with the flag.
 *
 * Layer: comm; a fast path (fast_path.h). Memory: none. Thread: the caller's.
 */
#include "comm/algorithm/small.h"

#include "comm/algorithm/exchange.h"
#include "comm/algorithm/fast_path.h"
#include "comm/progress/progress.h"
#include "comm/shm/line.h"

#include <string.h>

enum { WORD = 4, CLAIM_FROM_BYTES = 512 };

/* What is little goes word by word: the fold before has written it so, and a wider load would wait
 * until those stores have left the core. */
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

static __attribute__((noinline)) int go_on(struct muster_comm *comm, const void *in, void *out,
                                           struct fast_path quick, struct muster_err *err)
{
    struct task task;
    fast_task(comm, in, out, quick, &task);
    exchange_start(comm, &task, SCHEDULE_ALL_REDUCE);
    task.exchange.begun = true;
    task.exchange.base = quick.round;
    task.exchange.published = 1;
    return progress_run(comm, &task, err);
}

int small_run(struct muster_comm *comm, const void *in, void *out, struct muster_err *err)
{
    const struct plan *plan = way_plan(comm);
    const void *sources[COMM_MAX_RANKS];
    struct fast_path quick;
    if (!fast_enter(comm, &quick)) {
        return fast_refuse(comm, in, out, err);
    }
    struct board *mine = fast_board(comm, comm->rank, quick.round);
    put(mine, in, plan->bytes);
    fast_publish(comm, quick, mine);
    if (plan->bytes > sizeof mine->little && comm->intel && !comm->oversubscribed) {
        line_demote(mine, sizeof *mine + plan->bytes);
    }
    for (int r = 0; r < comm->size; r++) {
        sources[r] = board_blob(fast_board(comm, r, quick.round), plan->bytes);
    }
    sources[comm->rank] = in;
    if (!fast_wait(comm, quick)) {
        return go_on(comm, in, out, quick, err);
    }
    plan->fold(out, sources, comm->size, plan->count, plan->divisor);
    if (comm->size == 2 && !comm->intel && plan->bytes >= CLAIM_FROM_BYTES) {
        line_claim(fast_board(comm, 1 - comm->rank, quick.round)->data, plan->bytes);
    }
    fast_leave(comm, quick, quick.round + 1);
    return 0;
}
