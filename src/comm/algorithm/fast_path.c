/* What all fast paths need, but only once in a call. Layer: comm; see fast_path.h. */
#include "comm/algorithm/fast_path.h"

#include "comm/health/failure.h"
#include "comm/health/quiesce.h"

#include <sched.h>

enum { YIELDS = 8 };

int fast_refuse(struct muster_comm *comm, const void *in, void *out, struct muster_err *err)
{
    const struct prepared *known = &way_plan(comm)->call;
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = known->kind,
                               .type = known->type,
                               .op = known->op,
                               .in = in,
                               .out = out,
                               .count = known->count};
    way_plan(comm)->run = NULL;
    return muster_run(comm, &call, err);
}

void fast_task(struct muster_comm *comm, const void *in, void *out, struct fast_path quick,
               struct task *ret)
{
    assert(use_is(&comm->use, COMM_IN_CALL) && quick.number == comm->started);
    ret->call = way_plan(comm)->call;
    ret->call.in = in;
    ret->call.out = out;
    ret->number = quick.number;
    ret->signature = quick.signature;
    ret->lane = LANE_MAIN;
    ret->waiting = comm->rank == 0 ? 1 : 0;
    ret->begun = true; /* the call log has it already */
    ret->moved = false;
    ret->link_rounds = 0;
    ret->linked = NULL;
}

/* Yields only a few times: a yield may take milliseconds, and nobody checks for deaths meanwhile.
 */
bool fast_wait_oversubscribed(struct muster_comm *comm, uint32_t round, uint32_t signature)
{
    uint64_t want = segment_flag(round + 1, signature);
    int yields = YIELDS;
    for (int r = 0; r < comm->size; r++) {
        const struct board *board = fast_board(comm, r, round);
        while (atomic_load_explicit(&board->flag, memory_order_acquire) != want) {
            if (--yields < 0) {
                return false;
            }
            sched_yield();
        }
    }
    return true;
}

int fast_missing(struct muster_comm *comm, struct task *task, uint32_t round,
                 struct muster_err *err)
{
    uint64_t want = segment_flag(round + 1, task->signature);
    for (int r = 0; r < comm->size; r++) {
        uint64_t flag =
            atomic_load_explicit(&fast_board(comm, r, round)->flag, memory_order_acquire);
        if (r != comm->rank && flag != want) {
            task->waiting = r;
            return flag >> 32 == want >> 32 ? failure_mismatch(comm, task, r, err) : 0;
        }
    }
    return 0; /* the others have published since */
}

int fast_leave_rounds(struct muster_comm *comm, struct task *task, uint32_t round, int r,
                      struct muster_err *err)
{
    if (r == 0) {
        return fast_missing(comm, task, round, err);
    }
    task->waiting = quiesce_find_closed(comm);
    int why = failure_check(comm, task, err);
    return why < 0 ? why : r;
}
