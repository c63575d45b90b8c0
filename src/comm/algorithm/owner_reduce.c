/* All-reduce of large vectors on one host (of two ranks with a processor each: pairwise.c). The
 * vector is cut into chunks, each chunk into a part for each rank. A contributor fills the owner's
 * slot with its part (asked); the owner reduces all contributions in rank order and writes the
 * result into its own output and, in place, into every slot (answered); the contributor takes it
 * out and claims the lines. Each line thus goes back and forth between two cores and is never
 * shared, which is what makes it fast: the same with separate result slots takes 2 to 5 times as
 * long (measured: AMD Zen 4). Three stages run one chunk apart, over as few slots as that takes, so
 * that they stay in the L2 cache with the data.
 *
 * Slot k of a pair is filled again when its contributor has taken the answer out, so that no other
 * flags are needed.
 *
 * Layer: comm. Memory: the task's. Thread: the holder of the lane.
 */
#include "comm/algorithm/owner_reduce.h"

#include "comm/algorithm/way.h"

#include "comm/health/failure.h"
#include "comm/shm/line.h"
#include "comm/state/bell.h"
#include "comm/state/call_log.h"
#include "schedule/choose.h"
#include "schedule/partition.h"

#include <assert.h>
#include <string.h>

enum { FILL_AHEAD = OWNER_SLOTS };

static struct owner_slot *slot_of(struct muster_comm *comm, struct task *task, int owner,
                                  int contributor, size_t chunk)
{
    return segment_owner_slot(&comm->segment, owner, contributor,
                              (way_of(task)->owner_reduce.base + chunk) % OWNER_SLOTS);
}

static uint64_t flag_of(struct task *task, size_t chunk)
{
    return segment_flag(way_of(task)->owner_reduce.base + (uint32_t)chunk + 1, task->signature);
}

static struct partition part_of(const struct muster_comm *comm, struct task *task, size_t chunk,
                                int rank)
{
    return partition_part(task->call.count, comm->size, way_of(task)->owner_reduce.block, chunk,
                          rank);
}

/* Returns 1 if the word shows this chunk, 0 if not yet, or a negative code if it shows another
 * call. */
static int reached(struct muster_comm *comm, struct task *task, _Atomic uint64_t *word,
                   size_t chunk, int rank, struct muster_err *err)
{
    uint64_t want = flag_of(task, chunk);
    uint64_t flag = atomic_load_explicit(word, memory_order_acquire);
    if (flag == want) {
        return 1;
    }
    task->waiting = rank;
    return flag >> 32 == want >> 32 ? failure_mismatch(comm, task, rank, err) : 0;
}

static void fill(struct muster_comm *comm, struct task *task, size_t chunk)
{
    const char *in = task->call.in;
    assert(chunk < way_of(task)->owner_reduce.taken + OWNER_SLOTS);
    for (int step = 1; step < comm->size; step++) {
        int owner = (comm->rank + step) % comm->size;
        struct partition p = part_of(comm, task, chunk, owner);
        struct owner_slot *slot = slot_of(comm, task, owner, comm->rank, chunk);
        const char *part = in + p.first * task->call.unit;
        slot->phase = segment_phase(part);
        memcpy(owner_slot_data(slot), part, p.count * task->call.unit);
        atomic_store_explicit(&slot->asked, flag_of(task, chunk), memory_order_release);
        bell_wake(segment_control(&comm->segment, owner));
    }
}

static int may_reduce(struct muster_comm *comm, struct task *task, size_t chunk,
                      struct muster_err *err)
{
    for (int from = 0; from < comm->size; from++) {
        if (from == comm->rank) {
            continue;
        }
        struct owner_slot *slot = slot_of(comm, task, comm->rank, from, chunk);
        int r = reached(comm, task, &slot->asked, chunk, from, err);
        if (r <= 0) {
            return r;
        }
    }
    return 1;
}

/* Reduces a chunk of two ranks: writes both outputs in one pass, line by line. */
static void reduce_pair(struct muster_comm *comm, struct task *task, size_t chunk)
{
    struct partition p = part_of(comm, task, chunk, comm->rank);
    assert(p.count * task->call.unit <= OWNER_BYTES);
    reduce_twin_fn twin = task->call.kernels.twin;
    size_t offset = p.first * task->call.unit;
    char *data = owner_slot_data(slot_of(comm, task, comm->rank, 1 - comm->rank, chunk));
    char *out = (char *)task->call.out + offset;
    const char *in = (const char *)task->call.in + offset;
    const char *left = comm->rank == 0 ? in : data, *right = comm->rank == 0 ? data : in;
    size_t head = segment_to_line(out, task->call.unit, p.count), skip = head * task->call.unit;
    twin(out, data, left, right, head);
    twin(out + skip, data + skip, left + skip, right + skip, p.count - head);
}

static void reduce_all(struct muster_comm *comm, struct task *task, size_t chunk)
{
    struct partition p = part_of(comm, task, chunk, comm->rank);
    assert(p.count * task->call.unit <= OWNER_BYTES);
    size_t offset = p.first * task->call.unit;
    const void *sources[MUSTER_MAX_RANKS];
    void *outs[MUSTER_MAX_RANKS];
    int num_outs = 0;
    outs[num_outs++] = (char *)task->call.out + offset;
    for (int from = 0; from < comm->size; from++) {
        if (from == comm->rank) {
            sources[from] = (const char *)task->call.in + offset;
        } else {
            char *data = owner_slot_data(slot_of(comm, task, comm->rank, from, chunk));
            sources[from] = data;
            outs[num_outs++] = data;
        }
    }
    reduce_into(task->call.kernels.reduce, outs, num_outs, sources, comm->size, p.count,
                task->call.unit, task->call.divisor);
}

static void reduce(struct muster_comm *comm, struct task *task, size_t chunk)
{
    if (comm->size == 2 && task->call.divisor == 1) {
        reduce_pair(comm, task, chunk);
    } else {
        reduce_all(comm, task, chunk);
    }
    for (int step = 1; step < comm->size; step++) {
        int to = (comm->rank + step) % comm->size;
        struct owner_slot *slot = slot_of(comm, task, comm->rank, to, chunk);
        atomic_store_explicit(&slot->answered, flag_of(task, chunk), memory_order_release);
        bell_wake(segment_control(&comm->segment, to));
    }
}

static int may_take(struct muster_comm *comm, struct task *task, size_t chunk,
                    struct muster_err *err)
{
    for (int owner = 0; owner < comm->size; owner++) {
        if (owner == comm->rank) {
            continue;
        }
        struct owner_slot *slot = slot_of(comm, task, owner, comm->rank, chunk);
        int r = reached(comm, task, &slot->answered, chunk, owner, err);
        if (r <= 0) {
            return r;
        }
    }
    return 1;
}

static void take(struct muster_comm *comm, struct task *task, size_t chunk)
{
    for (int step = 1; step < comm->size; step++) {
        int owner = (comm->rank + step) % comm->size;
        struct partition p = part_of(comm, task, chunk, owner);
        char *out = (char *)task->call.out + p.first * task->call.unit;
        char *data = owner_slot_data(slot_of(comm, task, owner, comm->rank, chunk));
        line_take(out, data, p.count * task->call.unit, comm->tuning->claims);
    }
}

/* Each of the next functions moves its stage one chunk forward if it can. Returns 1 if it did. */
static int fill_next(struct muster_comm *comm, struct task *task)
{
    struct owner_reduce *r = &way_of(task)->owner_reduce;
    assert(r->taken <= r->reduced && r->reduced <= r->filled && r->filled <= r->chunks);
    if (r->filled == r->chunks || r->filled >= r->taken + FILL_AHEAD) {
        return 0;
    }
    fill(comm, task, r->filled++);
    return 1;
}

static int reduce_next(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct owner_reduce *owner = &way_of(task)->owner_reduce;
    int r = owner->reduced < owner->filled ? may_reduce(comm, task, owner->reduced, err) : 0;
    if (r > 0) {
        reduce(comm, task, owner->reduced++);
    }
    return r;
}

static int take_next(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct owner_reduce *owner = &way_of(task)->owner_reduce;
    int r = owner->taken < owner->reduced ? may_take(comm, task, owner->taken, err) : 0;
    if (r > 0) {
        take(comm, task, owner->taken++);
    }
    return r;
}

static int advance(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    int filled = fill_next(comm, task);
    int reduced = reduce_next(comm, task, err);
    int taken = reduced < 0 ? reduced : take_next(comm, task, err);
    task->moved |= filled > 0 || reduced > 0 || taken > 0;
    return taken < 0 ? taken : filled | reduced | taken;
}

static int owner_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct owner_reduce *owner = &way_of(task)->owner_reduce;
    struct lane *lane = &comm->lanes[task->lane];
    if (!owner->begun) {
        owner->begun = true;
        owner->base = lane->owner_turn;
        call_log_begin(comm, task);
    }
    while (owner->taken < owner->chunks) {
        int r = advance(comm, task, err);
        if (r <= 0) {
            return r;
        }
    }
    lane->owner_turn += (uint32_t)owner->chunks;
    return 1;
}

void owner_start(struct muster_comm *comm, struct task *task, size_t block_bytes)
{
    struct owner_reduce *r = &way_of(task)->owner_reduce;
    _Static_assert((int)OWNER_BYTES >= (int)SCHEDULE_MAX_BLOCK_BYTES, "a block fits a slot");
    r->block = block_bytes / task->call.unit;
    r->chunks = partition_chunks(task->call.count, comm->size, r->block);
    r->begun = false;
    r->filled = r->reduced = r->taken = 0;
    task->step = owner_step;
}
