/* What the quick ways do but once. Layer: comm; see quick.h. */
#include "comm/quick.h"

#include <sched.h>

enum { YIELDS = 8 };

int quick_learn(struct muster_comm *comm, const struct muster_call *call, struct muster_err *err)
{
    if (call->kind != MUSTER_ALL_REDUCE || !comm->all_local || comm->size == 1) {
        return 0;
    }
    int rc = call_check(comm, call, err);
    size_t bytes = call->count * muster_type_bytes(call->type);
    if (rc < 0 || bytes == 0) {
        return rc;
    }
    struct schedule_choice choice = call_choose(comm, bytes, comm->live_allocations > 0);
    if (choice.algorithm == SCHEDULE_RING) {
        return 0;
    }
    struct known_call known = {.type = call->type, .op = call->op, .count = call->count};
    uint64_t count;
    call_signed(comm, call, &known.shape, &count);
    known.bytes = bytes;
    known.digest = call_digest(comm->generation, known.shape, count);
    known.fold = reduce_find(call->type, call->op);
    known.divisor = call->op == MUSTER_AVG ? comm->size : 1;
    if (choice.algorithm == SCHEDULE_DIRECT) {
        direct_prepare(comm, call, &known.direct);
        known.run = direct_run;
    } else if (choice.algorithm == SCHEDULE_SWAP) {
        swap_prepare(comm, call, choice.block_bytes, &known.swap);
        known.run = swap_run;
    } else {
        known.run = small_run;
    }
    comm->known = known;
    return 1;
}

static struct muster_call known_call(const struct muster_comm *comm, const void *in, void *out)
{
    return (struct muster_call){.kind = MUSTER_ALL_REDUCE,
                                .type = comm->known.type,
                                .op = comm->known.op,
                                .in = in,
                                .out = out,
                                .count = comm->known.count};
}

int quick_refuse(struct muster_comm *comm, const void *in, void *out, struct muster_err *err)
{
    struct muster_call call = known_call(comm, in, out);
    comm->known.count = COMM_KNOWS_NONE;
    return muster_run(comm, &call, err);
}

void quick_task(struct muster_comm *comm, const void *in, void *out, struct quick quick,
                struct task *ret)
{
    ret->call = known_call(comm, in, out);
    ret->number = quick.number;
    ret->signature = quick.signature;
    ret->lane = LANE_MAIN;
    ret->unit = muster_type_bytes(comm->known.type);
    ret->waiting = comm->rank == 0 ? 1 : 0;
    ret->begun = true; /* recorded */
    ret->moved = false;
    ret->link_rounds = 0;
}

/* A few turns only: a yield may take milliseconds, and nobody looks for deaths meanwhile. */
bool quick_wait_crowded(struct muster_comm *comm, struct quick quick)
{
    uint64_t want = comm_flag(quick.round + 1, quick.signature);
    int yields = YIELDS;
    for (int r = 0; r < comm->size; r++) {
        const struct board *board = quick_board(comm, r, quick.round);
        while (atomic_load_explicit(&board->flag, memory_order_acquire) != want) {
            if (--yields < 0) {
                return false;
            }
            sched_yield();
        }
    }
    return true;
}
