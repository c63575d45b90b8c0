/* All-reduce of two ranks on one host, in private memory. Each rank fills slots with its first
 * chunks; then each reduces what the other has brought with its own chunk and, in the same pass,
 * puts a later chunk of its own where it has read. So every line that crosses between the cores
 * brings something and goes back with something, is written by the core that has just read it, and
 * is never in two caches: two ranks that reduce everything this way are faster than two that reduce
 * a half each and send it back (owner_reduce.c; measured, AMD Zen 3, 1 MiB: 42 and 52 us).
 *
 * The rank that has read a slot is its next writer, so that no other flags are needed.
 *
 * Layer: comm. Memory: the task's. Thread: the holder of the lane, or the caller's (fast_path.h).
 */
#include "comm/algorithm/pairwise.h"

#include "comm/algorithm/fast_path.h"
#include "comm/algorithm/rounds.h"
#include "comm/health/failure.h"
#include "comm/progress/progress.h"
#include "comm/shm/line.h"
#include "comm/state/bell.h"
#include "comm/state/call_log.h"
#include "schedule/choose.h"
#include "schedule/partition.h"

#include <assert.h>
#include <string.h>

/* With more chunks the call becomes a task, so that an abort need not wait for its end. */
enum { FAST_CHUNKS = 64 };

_Static_assert((int)OWNER_BYTES >= (int)SCHEDULE_MAX_BLOCK_BYTES, "a block fits a slot");
_Static_assert((OWNER_SLOTS & (OWNER_SLOTS - 1)) == 0, "turns are counted modulo 2^32");

/* Returns the slot of the writer's chunk of this turn: with each use of a slot, the other rank is
 * its writer. */
static struct owner_slot *slot_of(const struct pairwise *s, size_t chunk, int writer)
{
    uint32_t turn = s->base + (uint32_t)chunk;
    return &s->sides[((uint32_t)writer + turn / OWNER_SLOTS) % 2][turn % OWNER_SLOTS];
}

static uint64_t flag_of(const struct pairwise *s, size_t chunk)
{
    return segment_flag(s->base + (uint32_t)chunk + 1, s->signature);
}

static struct partition part_of(const struct pairwise *s, size_t chunk)
{
    return partition_part(s->count, 1, s->block, chunk, 0);
}

static void fill(struct owner_slot *slot, const char *part, size_t bytes)
{
    assert(bytes <= OWNER_BYTES);
    slot->phase = segment_phase(part);
    memcpy(owner_slot_data(slot), part, bytes);
}

static void say_filled(struct muster_comm *comm, const struct pairwise *s, struct owner_slot *slot,
                       size_t chunk)
{
    atomic_store_explicit(&slot->asked, flag_of(s, chunk), memory_order_release);
    bell_wake(segment_control(&comm->segment, 1 - comm->rank));
}

/* Publishes one of the first chunks; trade() sends the later ones. */
ROUNDS_INLINE void publish(struct muster_comm *comm, void *own, size_t chunk)
{
    const struct pairwise *s = own;
    struct owner_slot *slot = slot_of(s, chunk, comm->rank);
    struct partition part = part_of(s, chunk);
    assert(chunk < OWNER_SLOTS);
    fill(slot, s->in + part.first * s->unit, part.count * s->unit);
    say_filled(comm, s, slot, chunk);
}

/* Reduces, and puts the next data into the slot, in one pass, line by line. */
static void swap(const struct pairwise *s, int rank, char *out, char *data, const char *own,
                 const char *next, size_t count)
{
    const char *left = rank == 0 ? own : data, *right = rank == 0 ? data : own;
    size_t head = segment_to_line(out, s->unit, count), skip = head * s->unit;
    s->kernels.swap(out, data, left, right, next, head);
    s->kernels.swap(out + skip, data + skip, left + skip, right + skip, next + skip, count - head);
}

static void reduce(const struct pairwise *s, int rank, char *out, const char *data, const char *own,
                   size_t count)
{
    const void *sources[] = {rank == 0 ? own : data, rank == 0 ? data : own};
    s->kernels.reduce(out, sources, 2, count, s->divisor);
}

/* Reduces a chunk that has arrived, and sends another in its place. This is one pass, unless the
 * call is an average or the ranks' buffers have different offsets in their cache lines. */
static void trade(struct muster_comm *comm, struct pairwise *s, size_t chunk)
{
    struct owner_slot *slot = slot_of(s, chunk, 1 - comm->rank);
    struct partition part = part_of(s, chunk), later = {part.first, 0};
    if (s->at.published < s->at.rounds) {
        assert(s->at.published == chunk + OWNER_SLOTS);
        later = part_of(s, s->at.published);
    }
    const char *own = s->in + part.first * s->unit, *next = s->in + later.first * s->unit;
    char *out = s->out + part.first * s->unit, *data = owner_slot_data(slot);
    assert(later.count <= part.count && part.count * s->unit <= OWNER_BYTES);
    if (s->divisor > 1 || segment_phase(next) != slot->phase) {
        reduce(s, comm->rank, out, data, own, part.count);
        fill(slot, next, later.count * s->unit);
    } else {
        size_t skip = later.count * s->unit;
        swap(s, comm->rank, out, data, own, next, later.count);
        reduce(s, comm->rank, out + skip, data + skip, own + skip, part.count - later.count);
    }
    if (later.count > 0) {
        say_filled(comm, s, slot, s->at.published++);
    }
}

ROUNDS_INLINE bool wait(struct muster_comm *comm, void *own, size_t chunk, int spins)
{
    const struct pairwise *s = own;
    const struct owner_slot *slot = slot_of(s, chunk, 1 - comm->rank);
    uint64_t want = flag_of(s, chunk);
    while (atomic_load_explicit(&slot->asked, memory_order_acquire) != want) {
        if (--spins < 0) {
            return false;
        }
        line_pause();
    }
    return true;
}

ROUNDS_INLINE int consume(struct muster_comm *comm, void *own, size_t chunk)
{
    trade(comm, own, chunk);
    return 1;
}

static const struct rounds_way way = {
    .slots = OWNER_SLOTS, .publish = publish, .wait = wait, .consume = consume};

static void end(struct muster_comm *comm, const struct pairwise *s)
{
    assert(s->at.published == s->at.rounds);
    comm->lanes[LANE_MAIN].owner_turn = s->base + (uint32_t)s->at.rounds;
}

static int pairwise_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct pairwise *s = &way_of(task)->pairwise;
    size_t before = s->at.consumed;
    if (s->at.published == 0) { /* otherwise the fast path has begun the call */
        s->signature = task->signature;
        s->base = comm->lanes[LANE_MAIN].owner_turn;
        call_log_begin(comm, task);
    }
    if (rounds_run(comm, &way, s, &s->at, 0) == ROUNDS_DONE) {
        end(comm, s);
        return 1;
    }
    task->moved |= s->at.consumed > before;
    task->waiting = 1 - comm->rank;
    const struct owner_slot *slot = slot_of(s, s->at.consumed, task->waiting);
    uint64_t flag = atomic_load_explicit(&slot->asked, memory_order_acquire);
    uint64_t want = flag_of(s, s->at.consumed);
    bool other_call = flag != want && flag >> 32 == want >> 32;
    return other_call ? failure_mismatch(comm, task, task->waiting, err) : 0;
}

void pairwise_prepare(struct muster_comm *comm, const struct prepared *call, size_t block_bytes,
                      struct pairwise *ret)
{
    assert(comm->size == 2 && comm->all_local && call->count > 0);
    *ret = (struct pairwise){.in = call->in,
                             .out = call->out,
                             .unit = call->unit,
                             .count = call->count,
                             .block = block_bytes / call->unit,
                             .kernels = call->kernels,
                             .divisor = call->divisor};
    for (int side = 0; side < 2; side++) {
        ret->sides[side] = segment_owner_slot(&comm->segment, side, 1 - side, 0);
    }
    ret->at.rounds = partition_chunks(ret->count, 1, ret->block);
}

void pairwise_start(struct muster_comm *comm, struct task *task, size_t block_bytes)
{
    pairwise_prepare(comm, &task->call, block_bytes, &way_of(task)->pairwise);
    task->step = pairwise_step;
}

static __attribute__((noinline)) int go_on(struct muster_comm *comm, const struct pairwise *s,
                                           struct fast_path quick, struct muster_err *err)
{
    struct task task;
    fast_task(comm, s->in, s->out, quick, &task);
    way_of(&task)->pairwise = *s;
    task.step = pairwise_step;
    return progress_run(comm, &task, err);
}

int pairwise_run(struct muster_comm *comm, const void *in, void *out, struct muster_err *err)
{
    struct fast_path quick;
    if (!fast_enter(comm, &quick)) {
        return fast_refuse(comm, in, out, err);
    }
    struct pairwise s = way_plan(comm)->pairwise;
    s.in = in;
    s.out = out;
    s.signature = quick.signature;
    s.base = comm->lanes[LANE_MAIN].owner_turn;
    int spins = s.at.rounds <= FAST_CHUNKS ? FAST_SPINS : 0;
    if (rounds_run(comm, &way, &s, &s.at, spins) != ROUNDS_DONE) {
        return go_on(comm, &s, quick, err);
    }
    end(comm, &s);
    fast_leave(comm, quick, quick.round);
    return 0;
}
