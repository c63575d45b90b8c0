/* Makes a task of a prepared call: numbers and signs it, and chooses its algorithm.
 *
 * Layer: comm. Memory: the caller's task. Thread: the one that starts calls.
 */
#include "comm/api/call.h"

#include "comm/algorithm/exchange.h"
#include "comm/algorithm/hierarchy.h"
#include "comm/algorithm/large_copy.h"
#include "comm/algorithm/owner_reduce.h"
#include "comm/algorithm/pairwise.h"
#include "comm/algorithm/rooted.h"
#include "comm/algorithm/small.h"
#include "comm/algorithm/zero_copy.h"
#include "comm/messages/message.h"
#include "comm/state/call_log.h"

struct schedule_choice call_choose(const struct muster_comm *comm, size_t bytes, bool shared_memory)
{
    struct schedule_world world = {comm->size, comm->all_local, shared_memory, comm->oversubscribed,
                                   comm->tuning};
    return schedule_choose(&world, bytes);
}

/* On one host, gather-reduce has its own code (small.c), which is also a fast path. */
static void gather_reduce(struct muster_comm *comm, struct task *task)
{
    if (comm->all_local && comm->size > 1) {
        small_start(comm, task);
    } else {
        exchange_start(comm, task, SCHEDULE_ALL_REDUCE);
    }
}

static void go(struct muster_comm *comm, struct task *task, bool shared_memory)
{
    struct schedule_choice choice = call_choose(comm, task->call.bytes, shared_memory);
    switch (choice.algorithm) {
    case SCHEDULE_GATHER_REDUCE: gather_reduce(comm, task); break;
    case SCHEDULE_OWNER_REDUCE: owner_start(comm, task, choice.block_bytes); break;
    case SCHEDULE_PAIRWISE: pairwise_start(comm, task, choice.block_bytes); break;
    case SCHEDULE_ZERO_COPY: zero_copy_start(comm, task, call_go_private); break;
    case SCHEDULE_SCATTER_GATHER: exchange_start(comm, task, SCHEDULE_ALL_REDUCE_SPLIT); break;
    }
}

void call_go_private(struct muster_comm *comm, struct task *task)
{
    go(comm, task, false);
}

/* The choice may depend only on what all ranks know and agree on. */
static void choose(struct muster_comm *comm, struct task *task)
{
    static const enum schedule_pattern patterns[] = {
        [MUSTER_ALL_REDUCE] = SCHEDULE_ALL_REDUCE,
        [MUSTER_REDUCE] = SCHEDULE_REDUCE,
        [MUSTER_REDUCE_SCATTER] = SCHEDULE_REDUCE_SCATTER,
        [MUSTER_ALL_GATHER] = SCHEDULE_ALL_GATHER,
        [MUSTER_BROADCAST] = SCHEDULE_BROADCAST,
        [MUSTER_GATHER] = SCHEDULE_GATHER,
        [MUSTER_SCATTER] = SCHEDULE_SCATTER,
        [MUSTER_ALL_TO_ALL] = SCHEDULE_ALL_TO_ALL,
        [MUSTER_BARRIER] = SCHEDULE_BARRIER,
    };
    if (task->lane == LANE_MESSAGES) {
        message_start(task);
    } else if (hierarchy_fits(comm, task)) {
        hierarchy_start(comm, task, patterns[task->call.kind]);
    } else if (task->call.kind == MUSTER_ALL_TO_ALL && task->call.in_counts) {
        exchange_start_uneven(comm, task);
    } else if (task->call.kind == MUSTER_ALL_REDUCE) {
        go(comm, task, comm->live_allocations > 0);
    } else if (rooted_fits(comm, &task->call)) {
        rooted_start(task);
    } else if (large_copy_fits(comm, &task->call)) {
        large_copy_start(comm, task, patterns[task->call.kind]);
    } else {
        exchange_start(comm, task, patterns[task->call.kind]);
    }
}

/* Gives the task its place in the order of calls. */
static void number(struct muster_comm *comm, struct task *task)
{
    const struct prepared *call = &task->call;
    task->number = comm->started + 1;
    atomic_store_explicit(&comm->started, task->number, memory_order_relaxed);
    uint64_t digest = call_log_digest(comm->generation, call->shape, call->total);
    task->signature = call_log_sign(task->number, digest + comm->history);
    if (call->rooted) {
        comm->history = call_log_history(comm->history, digest);
        atomic_store_explicit(&comm->last_rooted, task->number, memory_order_relaxed);
    }
}

void call_begin(struct muster_comm *comm, struct task *task)
{
    task->lane = task->call.lane;
    task->number = 0;
    task->waiting = task->call.peer;
    task->begun = false;
    task->queued = false;
    task->moved = false;
    task->link_rounds = 0;
    task->linked = NULL;
    if (task->lane != LANE_MESSAGES) {
        number(comm, task);
    }
    choose(comm, task);
}
