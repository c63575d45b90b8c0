/* All-reduce in which each rank folds its share of all inputs and writes it into all outputs, in
 * memory that all ranks of the host see: that of muster_comm_alloc, or, for what is private and
 * short, the rank's own board. Of private memory only the others' shares are staged: copied in
 * before, and taken out after. Two rounds: in the first the ranks tell where their buffers lie (a
 * zero: private), which may be read from then on; in the second that their share is written.
 *
 * When a long buffer of one rank is private, all learn it in the first round and go the private
 * way.
 *
 * Layer: comm. Memory: the task's. Thread: the holder of the lane, or the caller's (fast_path.h).
 */
#include "comm/algorithm/zero_copy.h"

#include "comm/algorithm/fast_path.h"
#include "comm/health/failure.h"
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
enum { NOTHING, PLACES, SHARE }; /* what this rank has published */

/* From here on memory is the limit, and two streams of writes at once are slower than one after the
 * other, tile by tile (measured, 64 MiB: AMD Zen 3 5.5 and 4.3 ms; but Intel 7.5 and 8.7). */
static const size_t TWIN_BELOW_BYTES = 32 << 20;

_Static_assert((int)SCHEDULE_STAGED_BYTES <= (int)BOARD_BYTES, "staged in one slot");

/* Where a buffer lies, the same for all ranks; 0: it is private. */
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

/* A private buffer's stage is the rank's board. */
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

/* All but this rank's share, into the board and out of it. */
static void copy_others(const struct zero_copy *d, char *to, const char *from)
{
    size_t end = d->share_offset + d->share_bytes;
    memcpy(to, from, d->share_offset);
    memcpy(to + end, from + end, d->bytes - end);
}

static void publish(struct muster_comm *comm, struct zero_copy *d, uint32_t round, int what)
{
    struct board *mine = fast_board(comm, comm->rank, round);
    assert(d->published == what - 1);
    atomic_store_explicit(&mine->flag, segment_flag(round + 1, d->signature), memory_order_release);
    d->published = what;
    bell_wake_locals(comm);
}

static void tell_places(struct muster_comm *comm, struct zero_copy *d)
{
    struct board *mine = fast_board(comm, comm->rank, d->round);
    uint64_t in = locate(comm, d->in, d->bytes);
    uint64_t out = d->out == d->in ? in : locate(comm, d->out, d->bytes);
    uint64_t places[PLACE_WORDS] = {[IN_WORD] = in, [OUT_WORD] = out};
    memcpy(mine->little, places, sizeof places);
    if (in == 0 && is_staged(d)) {
        copy_others(d, mine->data, d->in);
    }
    d->stage_out = out == 0;
    publish(comm, d, d->round, PLACES);
}

/* When all have told. 1: done and published; 0: not possible, for a long buffer is private;
 * negative: not allowed any more. */
static int fold_share(struct muster_comm *comm, struct zero_copy *d)
{
    const void *sources[COMM_MAX_RANKS];
    void *outs[COMM_MAX_RANKS];
    int num_outs = 0;
    outs[num_outs++] = d->out + d->share_offset;
    for (int r = 0; r < comm->size; r++) {
        struct board *board = fast_board(comm, r, d->round);
        uint64_t places[PLACE_WORDS];
        memcpy(places, board->little, sizeof places);
        if (!is_staged(d) && (places[IN_WORD] == 0 || places[OUT_WORD] == 0)) {
            return 0;
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
        reduce_into(d->fold, outs, comm->size, sources, comm->size, count, d->unit, d->divisor);
    }
    quiesce_write_end(comm);
    publish(comm, d, d->round + 1, SHARE);
    return 1;
}

/* When all shares are written. The lines of the stage become ours again: see line_claim. */
static void take_others(struct muster_comm *comm, const struct zero_copy *d)
{
    if (d->stage_out) {
        char *stage = fast_board(comm, comm->rank, d->round)->data;
        copy_others(d, d->out, stage);
        if (comm->size == 2 && !comm->intel) {
            line_claim(comm->rank == 0 ? stage + d->share_bytes : stage, d->bytes - d->share_bytes);
        }
    }
    comm->lanes[LANE_MAIN].round = d->round + 2;
}

/* 1: all have published this round; 0: not yet; negative: one does something else. */
static int arrived(struct muster_comm *comm, struct task *task, uint32_t round,
                   struct muster_err *err)
{
    uint64_t want = segment_flag(round + 1, task->signature);
    for (int r = 0; r < comm->size; r++) {
        const struct board *board = fast_board(comm, r, round);
        uint64_t flag = atomic_load_explicit(&board->flag, memory_order_acquire);
        if (r != comm->rank && flag != want) {
            task->waiting = r;
            return flag >> 32 == want >> 32 ? failure_mismatch(comm, task, r, err) : 0;
        }
    }
    return 1;
}

static int reduce_or_stage(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct zero_copy *d = &way_of(task)->zero_copy;
    quiesce_write_begin(comm);
    int rc = fold_share(comm, d);
    if (rc > 0) {
        return rc;
    }
    quiesce_write_end(comm);
    if (rc < 0) {
        task->waiting = quiesce_find_closed(comm);
        int why = failure_check(comm, task, err);
        return why < 0 ? why : rc;
    }
    comm->lanes[LANE_MAIN].round = d->round + 1;
    d->fallback(comm, task);
    return task->step(comm, task, err);
}

static int zero_copy_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct zero_copy *d = &way_of(task)->zero_copy;
    int rc = 1;
    if (d->published == NOTHING) {
        d->round = comm->lanes[LANE_MAIN].round;
        d->signature = task->signature;
        call_log_begin(comm, task);
        tell_places(comm, d);
    }
    if (d->published == PLACES) {
        rc = arrived(comm, task, d->round, err);
        rc = rc > 0 ? reduce_or_stage(comm, task, err) : rc;
    }
    if (d->published == SHARE && rc > 0) {
        rc = arrived(comm, task, d->round + 1, err);
        if (rc > 0) {
            take_others(comm, d);
        }
    }
    return rc;
}

void zero_copy_prepare(const struct muster_comm *comm, const struct muster_call *call,
                       zero_copy_fallback_fn fallback, struct zero_copy *ret)
{
    size_t unit = muster_type_bytes(call->type);
    size_t part = call->count / (size_t)comm->size + PARTITION_GRAIN;
    struct partition share = partition_part(call->count, comm->size, part, 0, comm->rank);
    bool average = call->op == MUSTER_AVG;
    *ret = (struct zero_copy){.in = call->in,
                              .out = call->out,
                              .unit = unit,
                              .bytes = call->count * unit,
                              .share_offset = share.first * unit,
                              .share_bytes = share.count * unit,
                              .fold = reduce_find(call->type, call->op),
                              .divisor = average ? comm->size : 1,
                              .fallback = fallback};
    assert(ret->share_offset + ret->share_bytes <= ret->bytes);
    if (comm->size == 2 && !average && (comm->intel || ret->bytes < TWIN_BELOW_BYTES)) {
        ret->twin = reduce_find_ways(call->type, call->op).twin;
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
    quiesce_write_end(comm);
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
    d.round = quick.round;
    tell_places(comm, &d);
    quiesce_write_begin(comm);
    if (fast_wait(comm, quick) && fold_share(comm, &d) > 0) {
        quick.round++;
        if (fast_wait(comm, quick)) {
            take_others(comm, &d);
            fast_leave(comm, quick, quick.round + 1);
            return 0;
        }
    }
    return go_on(comm, &d, quick, err);
}
