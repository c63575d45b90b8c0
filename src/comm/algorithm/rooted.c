/* Small broadcast, scatter, reduce and gather on one host. A rank that has data for others
 * publishes it in a slot of its own and leaves; a rank that needs data of others waits for their
 * slots. The k-th of these calls uses the slots k % ROOTED_SLOTS. A rank that is ROOTED_SLOTS
 * calls ahead of another waits until it is less than half as many ahead, so that ranks that share
 * a processor do not change places in each call.
 *
 * A rank may leave a call before any other rank has entered it. A mismatch of the ranks' calls is
 * found later, in one of three places:
 * - by the reader of a slot, from its signature, which also covers all rooted calls before
 *   (call_log_history);
 * - by the next call that all ranks wait for, from the same signature;
 * - by ranks that do not read their neighbours' slots, from the records of the neighbours' last
 *   calls. Each rank looks every CHECK_EVERY calls, and when it frees the communicator; because of
 *   the fence in between, one of two ranks that differ sees it.
 *
 * Layer: comm. Memory: slots in the segment. Thread: the holder of the main lane.
 */
#include "comm/algorithm/rooted.h"

#include "comm/algorithm/way.h"
#include "comm/health/failure.h"
#include "comm/shm/line.h"
#include "comm/state/bell.h"
#include "comm/state/call_log.h"
#include "comm/state/peers.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { CHECK_EVERY = 2 }; /* in calls */

static bool gathers(const struct prepared *call)
{
    return call->kind == MUSTER_REDUCE || call->kind == MUSTER_GATHER;
}

static size_t slot_bytes(const struct muster_comm *comm, const struct prepared *call)
{
    return call->kind == MUSTER_SCATTER ? call->bytes * (size_t)comm->size : call->bytes;
}

bool rooted_fits(const struct muster_comm *comm, const struct prepared *call)
{
    return call->rooted && comm->all_local && comm->size > 1 && call->bytes <= ROOTED_BYTES &&
           slot_bytes(comm, call) <= ROOTED_BYTES;
}

static struct rooted_slots *slots_of(const struct muster_comm *comm, int rank)
{
    return segment_rooted(&comm->segment, comm->peers[rank].local);
}

/* Returns how many rooted calls all other ranks have left, and a rank that has left the fewest. */
static uint64_t find_last(const struct muster_comm *comm, int *ret_rank)
{
    uint64_t least = UINT64_MAX;
    assert(comm->size > 1);
    for (int rank = 0; rank < comm->size; rank++) {
        uint64_t left = rank == comm->rank ? UINT64_MAX
                                           : atomic_load_explicit(&slots_of(comm, rank)->left,
                                                                  memory_order_acquire);
        if (left < least) {
            least = left;
            *ret_rank = rank;
        }
    }
    return least;
}

/* Whether no rank needs the old data in this turn's slot any more. */
static bool has_room(struct muster_comm *comm, struct task *task, const struct rooted *r)
{
    struct rooted_turns *turns = &comm->rooted;
    if (r->turn < turns->all_left + ROOTED_SLOTS) {
        return true;
    }
    uint64_t left = find_last(comm, &task->waiting);
    bool room = r->turn < left + ROOTED_SLOTS / 2;
    turns->all_left = room ? left : turns->all_left;
    return room;
}

static void copy(char *to, const char *from, size_t bytes)
{
    if (bytes > 0 && to != from) {
        memcpy(to, from, bytes);
    }
}

/* Publishes all blocks except the root's own, which it copies to the root's output. */
static void publish_blocks(const struct muster_comm *comm, const struct prepared *call, char *blob)
{
    size_t before = (size_t)comm->rank * call->bytes, after = before + call->bytes;
    const char *data = call->in;
    copy(blob, data, before);
    copy(blob + after, data + after, slot_bytes(comm, call) - after);
    copy(call->out, data + before, call->bytes);
}

static bool fetches(const struct muster_comm *comm, const struct prepared *call)
{
    enum schedule_slot_kind kind = call->kind == MUSTER_SCATTER     ? SCHEDULE_SLOT_SCATTER
                                   : call->kind == MUSTER_BROADCAST ? SCHEDULE_SLOT_BROADCAST
                                                                    : SCHEDULE_SLOT_GATHER;
    return !comm->oversubscribed && schedule_takes_slot(comm->tuning, kind, slot_bytes(comm, call));
}

/* Takes the lines of a later call's slot from the ranks that have read them. Lines that they have
 * not read yet have not left this core. */
static void fetch_later(struct muster_comm *comm, const struct prepared *call, uint64_t turn)
{
    const struct rooted_slot *slot =
        rooted_slot_of(slots_of(comm, comm->rank), turn + comm->tuning->slots_ahead);
    size_t bytes = slot_bytes(comm, call);
    size_t end = bytes <= sizeof slot->little ? SEGMENT_LINE : SEGMENT_LINE + bytes;
    for (size_t at = 0; at < end; at += SEGMENT_LINE) {
        line_fetch((const char *)slot + at);
    }
}

static void publish(struct muster_comm *comm, const struct task *task, const struct rooted *r)
{
    const struct prepared *call = &task->call;
    struct rooted_slot *slot = rooted_slot_of(slots_of(comm, comm->rank), r->turn);
    char *blob = rooted_blob(slot, slot_bytes(comm, call));
    if (call->kind == MUSTER_SCATTER && call->bytes > 0) {
        publish_blocks(comm, call, blob);
    } else if (call->kind != MUSTER_SCATTER) {
        copy(blob, call->kind == MUSTER_BROADCAST ? call->out : call->in, call->bytes);
    }
    slot->signature = task->signature;
    atomic_store_explicit(&slot->published, r->turn + 1, memory_order_release);
    if (fetches(comm, call)) {
        fetch_later(comm, call, r->turn);
    }
}

/* Returns 1 if the slot of this rank has the data of this turn. */
static int look(struct muster_comm *comm, struct task *task, const struct rooted *r, int rank,
                struct muster_err *err)
{
    const struct rooted_slot *slot = rooted_slot_of(slots_of(comm, rank), r->turn);
    if (atomic_load_explicit(&slot->published, memory_order_acquire) != r->turn + 1) {
        task->waiting = rank;
        return 0;
    }
    return slot->signature == task->signature ? 1 : failure_mismatch(comm, task, rank, err);
}

static int wait_for_all(struct muster_comm *comm, struct task *task, struct rooted *rooted,
                        struct muster_err *err)
{
    for (; rooted->arrived < comm->size; rooted->arrived++) {
        int r = rooted->arrived == comm->rank ? 1 : look(comm, task, rooted, rooted->arrived, err);
        if (r <= 0) {
            return r;
        }
    }
    return 1;
}

static char *blob_of(struct muster_comm *comm, const struct task *task, const struct rooted *r,
                     int rank)
{
    size_t bytes = slot_bytes(comm, &task->call);
    return rooted_blob(rooted_slot_of(slots_of(comm, rank), r->turn), bytes);
}

/* Whether to claim the lines that were read from a slot, as line_claim says. */
static bool claims(const struct muster_comm *comm, const struct prepared *call)
{
    bool only_reader = gathers(call) || comm->size == 2;
    return only_reader && comm->tuning->claims && call->bytes >= LINE_CLAIM_FROM_BYTES;
}

/* Copies all blocks to the output, on the root of a gather. */
static void take_blocks(struct muster_comm *comm, const struct task *task, const struct rooted *r)
{
    const struct prepared *call = &task->call;
    bool back = claims(comm, call);
    for (int rank = 0; rank < comm->size; rank++) {
        char *to = (char *)call->out + (size_t)rank * call->bytes;
        if (rank == comm->rank) {
            copy(to, call->in, call->bytes);
        } else {
            line_take(to, blob_of(comm, task, r, rank), call->bytes, back);
        }
    }
}

/* Reduces the data of all ranks, on the root of a reduce. */
static void reduce_all(struct muster_comm *comm, const struct task *task, const struct rooted *r)
{
    const struct prepared *call = &task->call;
    const void *sources[MUSTER_MAX_RANKS];
    for (int rank = 0; rank < comm->size; rank++) {
        sources[rank] = rank == comm->rank ? call->in : blob_of(comm, task, r, rank);
    }
    call->kernels.reduce(call->out, sources, comm->size, call->count, call->divisor);
    for (int rank = 0; rank < comm->size && claims(comm, call); rank++) {
        if (rank != comm->rank) {
            line_claim(blob_of(comm, task, r, rank), call->bytes);
        }
    }
}

static void take(struct muster_comm *comm, const struct task *task, const struct rooted *r)
{
    const struct prepared *call = &task->call;
    if (call->bytes == 0) {
        return;
    }
    if (call->kind == MUSTER_GATHER) {
        take_blocks(comm, task, r);
    } else if (call->kind == MUSTER_REDUCE) {
        reduce_all(comm, task, r);
    } else {
        size_t offset = call->kind == MUSTER_SCATTER ? (size_t)comm->rank * call->bytes : 0;
        line_take(call->out, blob_of(comm, task, r, call->peer) + offset, call->bytes,
                  claims(comm, call));
    }
}

/* Compares the records of the last calls before this one. */
static int compare(struct muster_comm *comm, const struct task *task, int rank,
                   struct muster_err *err)
{
    const struct control *theirs = peers_control(comm, rank);
    bool differs = false;
    for (uint64_t back = 1; back <= CHECK_EVERY && back < task->number; back++) {
        differs |= call_log_differs(theirs, comm->control, task->number - back);
    }
    return differs ? failure_compare(comm, task, rank, CHECK_EVERY, err) : 0;
}

/* Each rank compares with its two neighbours: if not all ranks make the same calls, there are two
 * neighbours that differ. */
static int check_neighbours(struct muster_comm *comm, const struct task *task,
                            struct muster_err *err)
{
    int next = (comm->rank + 1) % comm->size, before = (comm->rank + comm->size - 1) % comm->size;
    atomic_thread_fence(memory_order_seq_cst); /* this rank's records are written before theirs
                                                  are read */
    int r = compare(comm, task, next, err);
    return r < 0 || next == before ? r : compare(comm, task, before, err);
}

/* Whether this rank reads the slots of all its neighbours in this call; their signatures tell more
 * than the records. */
static bool reads_neighbours(const struct muster_comm *comm, const struct prepared *call)
{
    bool root = call->peer == comm->rank;
    return gathers(call) ? root : !root && comm->size == 2;
}

/* Returns 1 if no difference from the neighbours can be seen yet. */
static int begin(struct muster_comm *comm, struct task *task, struct rooted *rooted,
                 struct muster_err *err)
{
    rooted->turn = comm->rooted.next;
    call_log_begin(comm, task);
    bool checks = task->number % CHECK_EVERY == 0 && !reads_neighbours(comm, &task->call);
    int r = checks ? check_neighbours(comm, task, err) : 0;
    return r < 0 ? r : 1;
}

/* Notes that this rank reads no slot of this turn any more. */
static int leave(struct muster_comm *comm, const struct rooted *r)
{
    assert(r->turn == comm->rooted.next && "calls of a lane run one after the other");
    comm->rooted.next++;
    atomic_store_explicit(&slots_of(comm, comm->rank)->left, comm->rooted.next,
                          memory_order_release);
    bell_wake_locals(comm);
    return 1;
}

static int step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct rooted *rooted = &way_of(task)->rooted;
    const struct prepared *call = &task->call;
    bool root = call->peer == comm->rank, publishes = root != gathers(call);
    int r = task->begun ? 1 : begin(comm, task, rooted, err);
    if (r > 0) {
        r = publishes ? has_room(comm, task, rooted)
            : root    ? wait_for_all(comm, task, rooted, err)
                      : look(comm, task, rooted, call->peer, err);
    }
    if (r <= 0) {
        return r;
    }
    if (publishes) {
        publish(comm, task, rooted);
    } else {
        take(comm, task, rooted);
    }
    return leave(comm, rooted);
}

void rooted_start(struct task *task)
{
    way_of(task)->rooted = (struct rooted){0};
    task->step = step;
}

void rooted_end(struct muster_comm *comm)
{
    bool all_wait = atomic_load_explicit(&comm->last_rooted, memory_order_relaxed) == 0;
    if (all_wait || !comm->all_local || comm->size == 1 || comm->notice_ms <= 0 ||
        phase_code(&comm->life) != 0) {
        return;
    }
    struct muster_err err = MUSTER_ERR_INIT;
    const struct task after = {.lane = LANE_MAIN, .number = comm->started + 1};
    if (check_neighbours(comm, &after, &err) < 0) {
        (void)fprintf(stderr, "muster: as rank %d freed its communicator: %s\n", comm->rank,
                      err.text);
    }
}
