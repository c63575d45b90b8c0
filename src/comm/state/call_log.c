/* How calls are told apart: kind, type, operation, root and counts are put into two words, and a
 * digest of them goes with every round. Each rank also keeps records of its last calls, in memory
 * that the others of its host read for their error messages.
 *
 * Layer: comm. Memory: the segment's. Thread: one writes, any reads.
 */
#include "comm/state/call_log.h"

/* Returns a digest of the blocks' lengths, in 32 bits; never 0. In an all-to-all each rank knows
 * only its own lengths, so they are not part of it. */
static uint64_t counts_digest(const struct prepared *call, int size)
{
    uint64_t mix = 1;
    for (int r = 0; r < size && call->kind == MUSTER_ALL_GATHER; r++) {
        mix = (mix ^ call->out_counts[r]) * 0x9e3779b97f4a7c15u;
        mix ^= mix >> 29;
    }
    return (mix & UINT32_MAX) | 1;
}

/* The counts of an all-to-all need not be equal on all ranks. */
static __attribute__((noinline)) void describe_counts(struct prepared *call, int size)
{
    call->shape |= counts_digest(call, size) << 32;
    call->total = call->in_counts ? 0 : types_total(call->out_counts, size);
}

void call_log_describe(struct prepared *call, const struct types_kind *kind, int size)
{
    uint64_t op = kind->reduces ? (uint64_t)call->op : 0;
    enum muster_type type = call->kind == MUSTER_BARRIER ? (enum muster_type)0 : call->type;
    uint64_t root = kind->rooted ? (uint64_t)call->peer : 0;
    call->shape = call_log_shape(call->kind, type) | op << 16 | root << 32;
    call->total = call->count;
    if (call->in_counts || call->out_counts) {
        describe_counts(call, size);
    }
}

void call_log_begin(struct muster_comm *comm, struct task *task)
{
    task->begun = true;
    call_log_write(comm, task->number, task->call.shape, task->call.total);
}

/* Called by the holder of the messages' lane. If there is no room, the message is not recorded. */
static void record_message(struct flight *flight, struct task *task)
{
    for (int slot = 0; slot < FLIGHT_MESSAGES; slot++) {
        struct flight_message *m = &flight->messages[slot];
        if (atomic_load_explicit(&m->number, memory_order_relaxed) != 0) {
            continue;
        }
        uint32_t number = atomic_load_explicit(&flight->waited, memory_order_relaxed) + 1;
        atomic_store_explicit(&flight->waited, number, memory_order_relaxed);
        atomic_store_explicit(&m->peer, task->call.peer, memory_order_relaxed);
        atomic_store_explicit(&m->tag, task->call.tag, memory_order_relaxed);
        atomic_store_explicit(&m->receives, task->call.kind != MUSTER_SEND, memory_order_relaxed);
        atomic_store_explicit(&m->number, number, memory_order_release);
        task->transfer.recorded = slot + 1;
        return;
    }
}

void call_log_message(struct muster_comm *comm, struct task *task, bool waits)
{
    struct flight *flight = &comm->control->flight;
    if (waits && task->transfer.recorded == 0) {
        record_message(flight, task);
    } else if (!waits && task->transfer.recorded > 0) {
        atomic_store_explicit(&flight->messages[task->transfer.recorded - 1].number, 0,
                              memory_order_release);
        task->transfer.recorded = 0;
    }
}
