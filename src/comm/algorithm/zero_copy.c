/* All-reduce in which each rank reduces its share of all inputs and writes it into all outputs, in
 * memory that all ranks of the host see: that of muster_comm_alloc, or, for what is private and
 * short, the rank's own board. Of private memory only the others' shares are staged: copied in
 * before, and taken out after. There are two rounds: in the first the ranks publish the addresses
 * of their buffers (zero if private), which may be read from then on; in the second that their
 * share is written.
 *
 * If a long buffer of one rank is private, all learn it in the first round and use the way for
 * private memory.
 *
 * Layer: comm. Memory: the task's. Thread: the holder of the lane, or the caller's (fast_path.h).
 */
#include "comm/algorithm/zero_copy.h"

#include "comm/algorithm/fast_path.h"
#include "comm/algorithm/rounds.h"
#include "comm/health/quiesce.h"
#include "comm/progress/progress.h"
#include "comm/shm/line.h"
#include "comm/state/bell.h"
#include "comm/state/call_log.h"
#include "schedule/choose.h"
#include "schedule/partition.h"

#include <assert.h>
#include <string.h>

enum { IN_WORD, OUT_WORD, PLACE_WORDS, ALLOCATION_SHIFT = 44 };
enum { PLACES, SHARE, ROUNDS }; /* rounds: a rank's places, then that its share is written */

_Static_assert((int)SCHEDULE_STAGED_BYTES <= (int)BOARD_BYTES, "staged in one slot");

/* Returns the offset of the buffer in shared memory, which is the same for all ranks; 0: the buffer
 * is private. */
static uint64_t locate(const struct muster_comm *comm, const void *buffer, size_t bytes)
{
    for (int i = 0; i < comm->num_allocations; i++) {
        const struct allocation *allocation = &comm->allocations[i];
        const char *start = allocation_start(allocation, comm->local_rank);
        size_t offset = (size_t)((uintptr_t)buffer - (uintptr_t)start);
        if (allocation->parts.base && offset < allocation->size_bytes &&
            bytes <= allocation->size_bytes - offset) {
            return (uint64_t)(i + 1) << ALLOCATION_SHIFT | offset;
        }
    }
    return 0;
}

/* Returns the address of a buffer of this rank; a private buffer is staged in the rank's board. */
static char *address_of(const struct muster_comm *comm, int rank, uint64_t place, char *stage)
{
    if (place == 0) {
        return stage;
    }
    const struct allocation *allocation = &comm->allocations[(place >> ALLOCATION_SHIFT) - 1];
    return allocation_start(allocation, rank) + (place & ((UINT64_C(1) << ALLOCATION_SHIFT) - 1));
}

static bool is_staged(const struct zero_copy *d)
{
    return d->bytes <= SCHEDULE_STAGED_BYTES;
}

/* Copies everything except this rank's share, into the board or out of it. */
static void copy_others(const struct zero_copy *d, char *to, const char *from)
{
    size_t end = d->share_offset + d->share_bytes;
    memcpy(to, from, d->share_offset);
    memcpy(to + end, from + end, d->bytes - end);
}

static void tell_places(struct muster_comm *comm, struct zero_copy *d, struct board *mine)
{
    uint64_t in = locate(comm, d->in, d->bytes);
    uint64_t out = d->out == d->in ? in : locate(comm, d->out, d->bytes);
    uint64_t places[PLACE_WORDS] = {[IN_WORD] = in, [OUT_WORD] = out};
    memcpy(mine->little, places, sizeof places);
    if (in == 0 && is_staged(d)) {
        copy_others(d, mine->data, d->in);
    }
    d->stage_out = out == 0;
}

ROUNDS_INLINE void publish(struct muster_comm *comm, void *own, size_t round)
{
    struct zero_copy *d = own;
    uint32_t turn = d->base + (uint32_t)round;
    struct board *mine = fast_board(comm, comm->rank, turn);
    if (round == PLACES) {
        tell_places(comm, d, mine);
    }
    fast_publish(comm, turn, d->signature, mine);
}

/* A blocking call announces its writes while it waits, which costs no time. A task does not,
 * because it may wait for long, and a thread that closes the communicator would wait for it. */
ROUNDS_INLINE bool wait(struct muster_comm *comm, void *own, size_t round, int spins)
{
    const struct zero_copy *d = own;
    bool early = round == PLACES && spins > 0;
    if (early) {
        quiesce_write_begin(comm);
    }
    if (!fast_wait(comm, d->base + (uint32_t)round, d->signature, spins)) {
        if (early) {
            quiesce_write_end(comm);
        }
        return false;
    }
    if (round == PLACES && !early) {
        quiesce_write_begin(comm);
    }
    return true;
}

/* Called when all have published their places. Returns ROUNDS_OTHER_WAY if this way is not possible
 * because a long buffer is private; negative: a rank has closed the communicator. */
static int reduce_share(struct muster_comm *comm, struct zero_copy *d)
{
    const void *sources[MUSTER_MAX_RANKS];
    void *outs[MUSTER_MAX_RANKS];
    int num_outs = 0;
    outs[num_outs++] = d->out + d->share_offset;
    for (int r = 0; r < comm->size; r++) {
        struct board *board = fast_board(comm, r, d->base);
        uint64_t places[PLACE_WORDS];
        memcpy(places, board->little, sizeof places);
        if (!is_staged(d) && (places[IN_WORD] == 0 || places[OUT_WORD] == 0)) {
            return ROUNDS_OTHER_WAY;
        }
        sources[r] = address_of(comm, r, places[IN_WORD], board->data) + d->share_offset;
        if (r != comm->rank) {
            outs[num_outs++] = address_of(comm, r, places[OUT_WORD], board->data) + d->share_offset;
        }
    }
    sources[comm->rank] = d->in + d->share_offset;
    if (quiesce_find_closed(comm) >= 0) {
        return MUSTER_EABORTED;
    }
    size_t count = d->share_bytes / d->unit;
    if (d->twin) {
        d->twin(outs[0], outs[1], sources[0], sources[1], count);
    } else {
        reduce_into(d->reduce, outs, comm->size, sources, comm->size, count, d->unit, d->divisor);
    }
    return 1;
}

/* Called when all shares are written. The lines of the stage then belong to this rank again: see
 * line_claim. */
static void take_others(struct muster_comm *comm, const struct zero_copy *d)
{
    if (d->stage_out) {
        char *stage = fast_board(comm, comm->rank, d->base)->data;
        copy_others(d, d->out, stage);
        if (comm->size == 2 && comm->tuning->claims) {
            line_claim(comm->rank == 0 ? stage + d->share_bytes : stage, d->bytes - d->share_bytes);
        }
    }
}

ROUNDS_INLINE int consume(struct muster_comm *comm, void *own, size_t round)
{
    struct zero_copy *d = own;
    if (round == SHARE) {
        take_others(comm, d);
        return 1;
    }
    int r = reduce_share(comm, d);
    quiesce_write_end(comm);
    return r;
}

static const struct rounds_way way = {
    .slots = 1, .publish = publish, .wait = wait, .consume = consume};

/* Called when the rounds of a task stop before their end. */
static int leave_rounds(struct muster_comm *comm, struct task *task, int r, struct muster_err *err)
{
    struct zero_copy *d = &way_of(task)->zero_copy;
    if (r == ROUNDS_WAITING || r < 0) {
        return fast_leave_rounds(comm, task, d->base + (uint32_t)d->at.consumed, r, err);
    }
    assert(r == ROUNDS_OTHER_WAY && d->at.consumed == PLACES);
    comm->lanes[LANE_MAIN].round = d->base + 1;
    d->fallback(comm, task);
    return task->step(comm, task, err);
}

static int zero_copy_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct zero_copy *d = &way_of(task)->zero_copy;
    if (d->at.published == 0) {
        d->base = comm->lanes[LANE_MAIN].round;
        d->signature = task->signature;
        call_log_begin(comm, task);
    }
    int r = rounds_run(comm, &way, d, &d->at, 0);
    if (r != ROUNDS_DONE) {
        return leave_rounds(comm, task, r, err);
    }
    comm->lanes[LANE_MAIN].round = d->base + ROUNDS;
    return 1;
}

void zero_copy_prepare(const struct muster_comm *comm, const struct prepared *call,
                       zero_copy_fallback_fn fallback, struct zero_copy *ret)
{
    size_t part = call->count / (size_t)comm->size + PARTITION_GRAIN;
    struct partition share = partition_part(call->count, comm->size, part, 0, comm->rank);
    *ret = (struct zero_copy){.in = call->in,
                              .out = call->out,
                              .unit = call->unit,
                              .bytes = call->bytes,
                              .share_offset = share.first * call->unit,
                              .share_bytes = share.count * call->unit,
                              .reduce = call->kernels.reduce,
                              .divisor = call->divisor,
                              .fallback = fallback,
                              .at = {.rounds = ROUNDS}};
    assert(ret->share_offset + ret->share_bytes <= ret->bytes);
    if (comm->size == 2 && call->divisor == 1 && ret->bytes < comm->tuning->twin_below_bytes) {
        ret->twin = call->kernels.twin;
    }
}

void zero_copy_start(struct muster_comm *comm, struct task *task, zero_copy_fallback_fn fallback)
{
    zero_copy_prepare(comm, &task->call, fallback, &way_of(task)->zero_copy);
    task->step = zero_copy_step;
}

static __attribute__((noinline)) int go_on(struct muster_comm *comm, const struct zero_copy *d,
                                           struct fast_path quick, struct muster_err *err)
{
    struct task task;
    fast_task(comm, d->in, d->out, quick, &task);
    way_of(&task)->zero_copy = *d;
    task.step = zero_copy_step;
    return progress_run(comm, &task, err);
}

int zero_copy_run(struct muster_comm *comm, const void *in, void *out, struct muster_err *err)
{
    struct fast_path quick;
    if (!fast_enter(comm, &quick)) {
        return fast_refuse(comm, in, out, err);
    }
    struct zero_copy d = way_plan(comm)->zero_copy;
    d.in = in;
    d.out = out;
    d.signature = quick.signature;
    d.base = quick.round;
    if (rounds_run(comm, &way, &d, &d.at, FAST_SPINS) != ROUNDS_DONE) {
        return go_on(comm, &d, quick, err);
    }
    fast_leave(comm, quick, quick.round + ROUNDS);
    return 0;
}
