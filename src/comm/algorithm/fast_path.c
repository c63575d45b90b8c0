/* What the fast paths do but once. Layer: comm; see fast_path.h. */
#include "comm/algorithm/fast_path.h"

#include <sched.h>

enum { YIELDS = 8 };

static struct muster_call plan(struct muster_comm *comm, const void *in, void *out)
{
    const struct plan *plan = way_plan(comm);
    return (struct muster_call){.struct_size = sizeof(struct muster_call),
                                .kind = MUSTER_ALL_REDUCE,
                                .type = plan->type,
                                .op = plan->op,
                                .in = in,
                                .out = out,
                                .count = plan->count};
}

int fast_refuse(struct muster_comm *comm, const void *in, void *out, struct muster_err *err)
{
    struct muster_call call = plan(comm, in, out);
    way_plan(comm)->run = NULL;
    return muster_run(comm, &call, err);
}

void fast_task(struct muster_comm *comm, const void *in, void *out, struct fast_path quick,
               struct task *ret)
{
    ret->call = plan(comm, in, out);
    ret->number = quick.number;
    ret->signature = quick.signature;
    ret->lane = LANE_MAIN;
    ret->unit = muster_type_bytes(way_plan(comm)->type);
    ret->waiting = comm->rank == 0 ? 1 : 0;
    ret->begun = true; /* recorded */
    ret->moved = false;
    ret->link_rounds = 0;
    ret->linked = NULL;
}

/* A few turns only: a yield may take milliseconds, and nobody looks for deaths meanwhile. */
bool fast_wait_oversubscribed(struct muster_comm *comm, struct fast_path quick)
{
    uint64_t want = segment_flag(quick.round + 1, quick.signature);
    int yields = YIELDS;
    for (int r = 0; r < comm->size; r++) {
        const struct board *board = fast_board(comm, r, quick.round);
        while (atomic_load_explicit(&board->flag, memory_order_acquire) != want) {
            if (--yields < 0) {
                return false;
            }
            sched_yield();
        }
    }
    return true;
}
