/* All-gather, scatter and all-to-all of large blocks on one host. There are two ways: by boards, in
 * two copies, one by each side; or each rank reads what it gets out of the others' buffers
 * (process_vm_readv(2)), in one copy. Which is faster depends on how far the ranks' cores are from
 * each other: rank 0 finds out by taking both (schedule/trial.h), and publishes its choice in the
 * first round.
 *
 * There are two rounds: in the first the ranks publish the addresses of their buffers, which may be
 * read from then on; in the second whether their reads succeeded. If one rank could not read, all
 * learn it there, and take the boards.
 *
 * No rank writes into another rank's memory. A rank whose call failed may return and use its
 * buffers while others still read them; it has closed the communicator before. A rank that has died
 * leaves its process id, which another process may get; the kernel has marked the rank as dead
 * before. So after each read this rank checks for both, and uses the data only if neither happened.
 *
 * Layer: comm. Memory: the task's. Thread: the holder of the lane.
 */
#include "comm/algorithm/large_copy.h"

#include "comm/algorithm/exchange.h"
#include "comm/algorithm/fast_path.h"
#include "comm/algorithm/rounds.h"
#include "comm/health/quiesce.h"
#include "comm/state/peers.h"
#include "comm/system/deadline.h"
#include "core/size.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

enum { PLACES, OUTCOMES, ROUNDS }; /* rounds: a rank publishes its place, then its outcome */
enum { PLACE_WORD, CHOICE_WORD, PLACES_WORDS };
enum { BOARDS, READS }; /* rank 0's choice, which it publishes in PLACES */
/* How the reads of a rank went. NOT_THESE: these buffers cannot be read (memory of a device);
 * NEVER: this rank may read no buffer (rules of ptrace(2), a kernel without the call). */
enum { DONE, NOT_THESE, NEVER };

/* After this many bytes the rank checks whether another has closed the communicator. */
enum { AT_ONCE_BYTES = 4 * 1024 * 1024 };

/* Ranks that share processors need one more context switch for the first round; this pays only for
 * blocks that are this many times larger. */
enum { OVERSUBSCRIBED_TIMES = 4 };

/* A broadcast or a gather gains nothing by reads, because one side copies into boards while the
 * other copies out of them. */
bool large_copy_fits(const struct muster_comm *comm, const struct prepared *call)
{
    bool even = !call->in_counts && !call->out_counts;
    bool gains = call->kind == MUSTER_ALL_GATHER || call->kind == MUSTER_SCATTER ||
                 call->kind == MUSTER_ALL_TO_ALL;
    size_t least =
        comm->tuning->reads_from_bytes * (comm->oversubscribed ? OVERSUBSCRIBED_TIMES : 1);
    return gains && even && comm->reads && comm->size > 1 && call->bytes >= least;
}

/* ---- The choice ---- */

/* Returns the trial for calls of this kind and, within a factor of four, of this size. */
static struct schedule_trial *trial_of(struct muster_comm *comm, const struct prepared *call)
{
    assert(call->kind >= MUSTER_ALL_GATHER && call->kind <= MUSTER_ALL_TO_ALL);
    size_t size = 0;
    for (size_t bytes = call->bytes / comm->tuning->reads_from_bytes;
         bytes >= 4 && size < COMM_COPY_SIZES - 1; bytes /= 4) {
        size++;
    }
    return &comm->copies[call->kind - MUSTER_ALL_GATHER][size];
}

/* Returns the time that the next write of this data will lose. A line that another core has read
 * costs its writer more. This happens after the call, but the time counts for the call that read
 * the line. */
static uint64_t retake_ns(const struct muster_comm *comm, const struct prepared *call)
{
    size_t blocks = call->kind == MUSTER_ALL_GATHER ? 1 : (size_t)comm->size - 1;
    size_t read = blocks * call->bytes;
    return read <= comm->tuning->retakes_to_bytes ? read / SEGMENT_LINE * comm->tuning->retake_ns
                                                  : 0;
}

static void note(struct muster_comm *comm, struct task *task, int way)
{
    const struct large_copy *d = &way_of(task)->large_copy;
    if (comm->rank == 0) {
        uint64_t later = way == READS ? retake_ns(comm, &task->call) : 0;
        schedule_trial_note(trial_of(comm, &task->call), way,
                            (uint64_t)(deadline_now_ns() - d->begun_ns) + later);
    }
}

/* ---- Reading ---- */

/* Returns what rank `from` sends to rank `to`, as a piece of the buffer of `from`. */
static struct schedule_piece sent(const struct schedule_exchange *plan, int from, int to)
{
    struct schedule_exchange its = *plan;
    its.rank = from;
    return schedule_send(&its, 0, to);
}

static void copy_own(const struct exchange *x)
{
    struct schedule_piece from = sent(&x->plan, x->plan.rank, x->plan.rank);
    struct schedule_piece to = schedule_receive(&x->plan, 0, x->plan.rank);
    if (to.bytes > 0 && x->out + to.offset != x->in + from.offset) {
        memcpy(x->out + to.offset, x->in + from.offset, to.bytes);
    }
}

/* Called after a read of that rank's memory. Returns an outcome, or a negative number when a rank
 * has closed the communicator. */
static int look_again(const struct muster_comm *comm, int rank)
{
    atomic_thread_fence(memory_order_acquire); /* not before the read */
    if (quiesce_find_closed(comm) >= 0) {
        return MUSTER_EABORTED;
    }
    return heartbeat_is_dead(&peers_control(comm, rank)->heartbeat) ? NOT_THESE : DONE;
}

/* Reads from the memory of this rank. Returns the same as look_again. */
static int read_bytes(const struct muster_comm *comm, int rank, char *to, uint64_t from,
                      size_t bytes)
{
    pid_t pid = atomic_load_explicit(&peers_control(comm, rank)->pid, memory_order_relaxed);
    for (size_t done = 0; done < bytes;) {
        size_t count = size_min(bytes - done, AT_ONCE_BYTES);
        struct iovec here = {to + done, count};
        struct iovec there = {(void *)(uintptr_t)(from + done), count};
        ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (n <= 0) {
            return n < 0 && (errno == EPERM || errno == ENOSYS) ? NEVER : NOT_THESE;
        }
        int r = look_again(comm, rank);
        if (r != DONE) {
            return r;
        }
        done += (size_t)n;
    }
    return DONE;
}

/* The order differs on each rank, so that not all read the same memory at once. */
static int read_all(struct muster_comm *comm, const struct large_copy *d)
{
    const struct exchange *x = d->exchange;
    copy_own(x);
    for (int i = 1; i < comm->size; i++) {
        int rank = (comm->rank + i) % comm->size;
        struct schedule_piece to = schedule_receive(&x->plan, 0, rank);
        if (to.bytes == 0) {
            continue;
        }
        uint64_t words[PLACES_WORDS];
        memcpy(words, fast_board(comm, rank, d->base + PLACES)->little, sizeof words);
        int r = read_bytes(comm, rank, x->out + to.offset,
                           words[PLACE_WORD] + sent(&x->plan, rank, comm->rank).offset, to.bytes);
        if (r != DONE) {
            return r;
        }
    }
    return DONE;
}

/* ---- Rounds ---- */

static void publish(struct muster_comm *comm, void *own, size_t round)
{
    struct large_copy *d = own;
    uint32_t turn = d->base + (uint32_t)round;
    struct board *mine = fast_board(comm, comm->rank, turn);
    uint64_t words[PLACES_WORDS] = {d->outcome};
    if (round == PLACES) {
        words[PLACE_WORD] = (uint64_t)(uintptr_t)d->exchange->in;
        words[CHOICE_WORD] = d->choice;
    }
    memcpy(mine->little, words, sizeof words);
    fast_publish(comm, turn, d->signature, mine);
}

static bool wait(struct muster_comm *comm, void *own, size_t round, int spins)
{
    const struct large_copy *d = own;
    return fast_wait(comm, d->base + (uint32_t)round, d->signature, spins);
}

/* When one rank may not read, all learn it, and none tries again. */
static int hear_outcomes(struct muster_comm *comm, const struct large_copy *d)
{
    uint64_t worst = DONE;
    for (int rank = 0; rank < comm->size; rank++) {
        uint64_t said;
        memcpy(&said, fast_board(comm, rank, d->base + OUTCOMES)->little, sizeof said);
        worst = said > worst ? said : worst;
    }
    comm->reads = worst != NEVER;
    return worst == DONE ? 1 : ROUNDS_OTHER_WAY;
}

static int consume(struct muster_comm *comm, void *own, size_t round)
{
    struct large_copy *d = own;
    d->task->moved = true;
    if (round == OUTCOMES) {
        return hear_outcomes(comm, d);
    }
    uint64_t words[PLACES_WORDS];
    memcpy(words, fast_board(comm, 0, d->base + PLACES)->little, sizeof words);
    if (words[CHOICE_WORD] == BOARDS) {
        return ROUNDS_OTHER_WAY;
    }
    int r = read_all(comm, d);
    d->outcome = r < 0 ? NOT_THESE : (uint64_t)r;
    return r < 0 ? r : 1;
}

static const struct rounds_way way = {
    .slots = 1, .publish = publish, .wait = wait, .consume = consume};

static int boards_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    int r = exchange_advance(comm, task, &task->exchange, err);
    if (r == 1) {
        note(comm, task, BOARDS);
    }
    return r;
}

/* Called when rank 0 chose the boards, or when not all ranks could read; then the trial notes that
 * reads take for ever. */
static int take_boards(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    const struct large_copy *d = &way_of(task)->large_copy;
    if (d->at.consumed == OUTCOMES && comm->rank == 0) {
        schedule_trial_note(trial_of(comm, &task->call), READS, SCHEDULE_TRIAL_FOR_EVER);
    }
    exchange_start(comm, task, task->exchange.plan.pattern);
    task->step = boards_step;
    return boards_step(comm, task, err);
}

static void begin(struct muster_comm *comm, struct task *task, struct large_copy *d)
{
    d->base = comm->lanes[LANE_MAIN].round;
    d->signature = task->signature;
    if (comm->rank == 0) {
        d->choice = (uint64_t)schedule_trial_choose(trial_of(comm, &task->call));
        d->begun_ns = deadline_now_ns();
    }
    call_log_begin(comm, task);
}

static int large_copy_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct large_copy *d = &way_of(task)->large_copy;
    d->task = task;
    d->exchange = &task->exchange;
    if (d->at.published == 0) {
        begin(comm, task, d);
    }
    int r = rounds_run(comm, &way, d, &d->at, 0);
    if (r == ROUNDS_WAITING || r < 0) {
        return fast_leave_rounds(comm, task, d->base + (uint32_t)d->at.consumed, r, err);
    }
    comm->lanes[LANE_MAIN].round = d->base + (uint32_t)d->at.published;
    if (r == ROUNDS_OTHER_WAY) {
        return take_boards(comm, task, err);
    }
    note(comm, task, READS);
    return 1;
}

void large_copy_start(struct muster_comm *comm, struct task *task, enum schedule_pattern pattern)
{
    const struct prepared *call = &task->call;
    struct exchange *x = &task->exchange;
    assert(task->lane == LANE_MAIN && comm->all_local);
    *x = (struct exchange){.plan = {.pattern = pattern,
                                    .rank = comm->rank,
                                    .size = comm->size,
                                    .root = call->peer,
                                    .unit = call->unit,
                                    .count = call->count,
                                    .capacity = SIZE_MAX},
                           .in = call->in,
                           .out = call->out};
    schedule_plan(&x->plan);
    assert(x->plan.rounds == 1);
    way_of(task)->large_copy = (struct large_copy){.at = {.rounds = ROUNDS}};
    task->step = large_copy_step;
}
