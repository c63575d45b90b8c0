/* Finds out when it is useless to wait any longer (a peer is dead, silent or closed, calls
 * something else, or takes too long), and writes the error message.
 *
 * A peer is suspected when it has been silent for `heartbeat_timeout_ms`. This time is counted in
 * beats of our own heartbeat thread, so that a pause of the whole machine does not count as
 * silence. What counts as a death is in peers.c.
 *
 * Layer: comm. Thread: any.
 */
#include "comm/health/failure.h"

#include "comm/health/doing.h"
#include "comm/health/quiesce.h"
#include "comm/state/bell.h"
#include "comm/state/call_log.h"
#include "comm/state/peers.h"
#include "comm/tcp/link.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static bool concerns(const struct task *task, int rank)
{
    bool message = prepared_is_message(&task->call);
    return !message || task->call.peer == rank || task->call.peer == MUSTER_ANY_SOURCE;
}

/* Names a call. Messages have no number: 0. */
static void name_call(uint64_t shape, uint64_t count, uint64_t number, char *ret, size_t size_bytes)
{
    char call[128];
    flight_name(shape, count, call, sizeof call);
    if (number == 0) {
        (void)snprintf(ret, size_bytes, "%s", call);
    } else {
        (void)snprintf(ret, size_bytes, "%s (call %llu)", call,
                       (unsigned long long)comm_user_number(number));
    }
}

static void name_task(const struct task *task, char *ret, size_t size_bytes)
{
    name_call(task->call.shape, task->call.total, task->number, ret, size_bytes);
}

static int fail_about(struct muster_comm *comm, const struct task *task, int rank,
                      enum muster_peer_state state, struct muster_err *err)
{
    char name[192];
    name_task(task, name, sizeof name);
    int code = MUSTER_EPEERDEAD;
    if (state == MUSTER_PEER_DEAD) {
        muster_fail(err, code, "rank %d died: %s cannot complete", rank, name);
    } else if (state == MUSTER_PEER_SUSPECTED) {
        bool local = comm->peers[rank].local >= 0;
        bool ended = local && peers_kill(comm, rank);
        muster_fail(err, code,
                    "rank %d sent no heartbeat for %lld ms and was evicted%s: %s "
                    "cannot complete",
                    rank, (long long)comm->heartbeat_timeout_ms,
                    ended ? " (its process was killed)" : "", name);
    } else {
        code = MUSTER_EABORTED;
        muster_fail(err, code, "rank %d closed the communicator: %s cannot complete", rank, name);
    }
    if (err) {
        err->rank = rank;
    }
    return code;
}

/* Ranks of this host that closed may know of a death elsewhere before our sockets report it. */
static void ask_closed(struct muster_comm *comm)
{
    for (int l = 0; l < comm->local_size; l++) {
        const struct control *c = segment_control(&comm->segment, l);
        if (atomic_load_explicit(&c->closed, memory_order_acquire)) {
            peers_believe(comm, atomic_load_explicit(&c->failed_rank, memory_order_relaxed));
        }
    }
}

/* Reads the record of this call at `rank`. Returns 1 if it was read. */
static int read_record(const struct muster_comm *comm, int rank, int lane, uint64_t number,
                       uint64_t *ret_shape, uint64_t *ret_count)
{
    if (number == 0) {
        return 0; /* a message: messages have no records */
    }
    if (comm->peers[rank].local < 0) {
        return link_record(comm, rank, lane, number, ret_shape, ret_count);
    }
    return flight_read(&peers_control(comm, rank)->flight, number, ret_shape, ret_count);
}

/* Names what a rank calls instead. If the ranks use the lanes in a different order, it may not have
 * come to this call yet. */
static void name_theirs(struct muster_comm *comm, const struct task *task, int rank, char *ret,
                        size_t size_bytes)
{
    uint64_t shape = 0, count = 0;
    bool ended;
    if (read_record(comm, rank, task->lane, task->number, &shape, &count)) {
        flight_name(shape, count, ret, size_bytes);
        return;
    }
    uint64_t number = comm->peers[rank].local < 0
                          ? link_lane_call(comm, rank, task->lane, &shape, &count)
                          : doing_last_call(comm, rank, &shape, &count, &ended);
    if (number == 0) {
        (void)snprintf(ret, size_bytes, "something else");
    } else {
        name_call(shape, count, number, ret, size_bytes);
    }
}

static int fail_mismatch(const struct muster_comm *comm, const char *ours, int rank,
                         const char *theirs, struct muster_err *err)
{
    muster_fail(err, MUSTER_EMISMATCH, "rank %d calls %s where rank %d calls %s", comm->rank, ours,
                rank, theirs);
    if (err) {
        err->rank = rank;
    }
    return MUSTER_EMISMATCH;
}

/* Returns a mismatch if both sides have records of that call and these differ. Each record is read
 * once and then named, because the thread of another lane may replace it meanwhile. */
static int compare(struct muster_comm *comm, int lane, uint64_t number, int rank,
                   struct muster_err *err)
{
    uint64_t shape, count, my_shape, my_count;
    if (!read_record(comm, rank, lane, number, &shape, &count) ||
        !read_record(comm, comm->rank, lane, number, &my_shape, &my_count) ||
        (shape == my_shape && count == my_count)) {
        return 0;
    }
    char ours[192], theirs[192];
    name_call(my_shape, my_count, number, ours, sizeof ours);
    flight_name(shape, count, theirs, sizeof theirs);
    return fail_mismatch(comm, ours, rank, theirs, err);
}

int failure_compare(struct muster_comm *comm, const struct task *task, int rank, uint64_t calls,
                    struct muster_err *err)
{
    int r = 0;
    uint64_t number = task->number > calls ? task->number - calls : 1;
    for (; r == 0 && number < task->number && comm->peers[rank].local >= 0; number++) {
        r = compare(comm, task->lane, number, rank, err);
    }
    return r;
}

int failure_mismatch(struct muster_comm *comm, const struct task *task, int rank,
                     struct muster_err *err)
{
    char ours[192], theirs[192];
    assert(rank != comm->rank && rank >= 0 && rank < comm->size);
    int r = failure_compare(comm, task, rank, FLIGHT_CALLS, err);
    if (r < 0) {
        return r;
    }
    name_theirs(comm, task, rank, theirs, sizeof theirs);
    name_task(task, ours, sizeof ours);
    return fail_mismatch(comm, ours, rank, theirs, err);
}

/* Also compares the calls before this one, if a rank may have left one of them early. */
static int check_records(struct muster_comm *comm, const struct task *task, struct muster_err *err)
{
    int r = 0;
    uint64_t last_rooted = atomic_load_explicit(&comm->last_rooted, memory_order_relaxed);
    bool early = last_rooted > 0 && last_rooted + ROOTED_SLOTS >= task->number;
    for (int peer = 0; peer < comm->size && r == 0 && !prepared_is_message(&task->call); peer++) {
        if (peer != comm->rank) {
            r = early ? failure_compare(comm, task, peer, ROOTED_SLOTS, err) : 0;
            r = r < 0 ? r : compare(comm, task->lane, task->number, peer, err);
        }
    }
    return r;
}

/* For a receiver, a peer that has left counts as alive until all that it sent has been read. */
static enum muster_peer_state state_for(const struct muster_comm *comm, const struct task *task,
                                        int rank)
{
    enum muster_peer_state state = peers_state(comm, rank);
    bool brings = state == MUSTER_PEER_CLOSED && task->call.kind != MUSTER_SEND &&
                  link_still_brings(comm, rank, task->lane);
    return brings ? MUSTER_PEER_ALIVE : state;
}

/* Whether the rank is gone and has not entered this call, or has sent nothing of it. */
static bool is_lacking(const struct muster_comm *comm, const struct task *task, int rank)
{
    if (rank == comm->rank || peers_state(comm, rank) == MUSTER_PEER_ALIVE) {
        return false;
    }
    return comm->peers[rank].local < 0 ? link_is_dry(comm, rank, task->lane, task->number)
                                       : !call_log_has(peers_control(comm, rank), task->number);
}

/* No collective ends without all ranks, whichever rank the task waits for. For ranks on other hosts
 * this is known for certain only if their frames come here. */
static bool lacks_one(const struct muster_comm *comm, const struct task *task)
{
    bool lacks = false;
    for (int i = 0; i < comm->here.size && task->number > 0 && !lacks; i++) {
        lacks = is_lacking(comm, task, comm->here.ranks[i]);
    }
    for (int i = 0; task->linked && i < task->linked->size && !lacks; i++) {
        lacks = is_lacking(comm, task, task->linked->ranks[i]);
    }
    return lacks;
}

bool failure_is_gone(const struct muster_comm *comm, const struct task *task)
{
    assert(task->waiting == MUSTER_ANY_SOURCE ||
           (task->waiting >= 0 && task->waiting < comm->size));
    if (task->waiting != MUSTER_ANY_SOURCE) {
        bool gone = task->waiting != comm->rank &&
                    state_for(comm, task, task->waiting) != MUSTER_PEER_ALIVE;
        return gone || lacks_one(comm, task);
    }
    /* A peer that closed in good order sends no more; the others may. */
    int closed = 0, lost = 0;
    for (int r = 0; r < comm->size; r++) {
        enum muster_peer_state state =
            r == comm->rank ? MUSTER_PEER_ALIVE : state_for(comm, task, r);
        closed += state == MUSTER_PEER_CLOSED;
        lost += state == MUSTER_PEER_DEAD || state == MUSTER_PEER_SUSPECTED;
    }
    return lost > 0 || (closed > 0 && closed == comm->size - 1);
}

/* Fails because of the first rank that concerns this task and is in this state. */
static int fail_if_any(struct muster_comm *comm, const struct task *task,
                       enum muster_peer_state state, struct muster_err *err)
{
    int r = 0;
    for (int rank = 0; rank < comm->size && r == 0; rank++) {
        if (rank != comm->rank && concerns(task, rank) && peers_state(comm, rank) == state) {
            r = fail_about(comm, task, rank, state, err);
        }
    }
    return r;
}

int failure_check(struct muster_comm *comm, const struct task *task, struct muster_err *err)
{
    int closed = phase_code(&comm->life);
    if (closed) {
        return muster_fail(err, MUSTER_EABORTED, "this communicator was closed: %s",
                           muster_code_text(closed));
    }
    if (!failure_is_gone(comm, task)) {
        return check_records(comm, task, err);
    }
    /* A death explains why others closed, so it is checked first; so is a call that differs. */
    ask_closed(comm);
    int r = fail_if_any(comm, task, MUSTER_PEER_DEAD, err);
    r = r < 0 ? r : fail_if_any(comm, task, MUSTER_PEER_SUSPECTED, err);
    r = r < 0 ? r : check_records(comm, task, err);
    return r < 0 ? r : fail_if_any(comm, task, MUSTER_PEER_CLOSED, err);
}

/* Names the ranks that have not entered this call, and what they do instead. Returns the first of
 * them; -1: all have entered it. */
static int list_missing(struct muster_comm *comm, const struct task *task, char *ret, size_t size)
{
    int first = -1;
    size_t used = 0;
    for (int r = 0; r < comm->size && used < size - 1; r++) {
        uint64_t shape = 0, count = 0;
        if (r == comm->rank || !concerns(task, r) ||
            read_record(comm, r, task->lane, task->number, &shape, &count)) {
            continue;
        }
        char in[200];
        uint64_t last = doing_describe(comm, r, in, sizeof in);
        if (last >= task->number && task->number > 0) {
            continue; /* a rank on another host, with which we do not exchange in this call */
        }
        int n = snprintf(ret + used, size - used, "%srank %d %s", first < 0 ? "" : "; ", r, in);
        used += n > 0 ? (size_t)n : 0;
        first = first < 0 ? r : first;
    }
    return first;
}

int failure_timeout(struct muster_comm *comm, const struct task *task, int64_t waited_ms,
                    struct muster_err *err)
{
    bool message = task->number == 0;
    char name[192], missing[256];
    (void)snprintf(missing, sizeof missing, message ? "nothing came" : "all ranks have entered it");
    int first = list_missing(comm, task, missing, sizeof missing);
    name_task(task, name, sizeof name);
    muster_fail(err, MUSTER_ETIMEDOUT, "%s timed out after %lld ms on rank %d: %s", name,
                (long long)waited_ms, comm->rank, missing);
    if (err) {
        err->rank = first;
    }
    return MUSTER_ETIMEDOUT;
}

void failure_notice(struct muster_comm *comm, const struct task *task, int64_t waited_ms)
{
    char name[192], missing[256];
    if (list_missing(comm, task, missing, sizeof missing) >= 0) {
        name_task(task, name, sizeof name);
        (void)fprintf(stderr, "muster: rank %d has waited for %lld s in %s: %s\n", comm->rank,
                      (long long)waited_ms / 1000, name, missing);
    }
}

static void end(struct muster_comm *comm, enum comm_phase phase, int code)
{
    if (!phase_close(&comm->life, phase, code)) {
        quiesce_wait(comm);
        return;
    }
    int failed_rank = peers_failed_rank(comm);
    atomic_store(&comm->control->failed_rank, failed_rank);
    atomic_store(&comm->control->closed, 1);
    atomic_store(&comm->control->flight.closed, 1);
    for (int l = 0; l < comm->local_size; l++) {
        bell_ring(segment_control(&comm->segment, l));
    }
    link_say_closed(comm, failed_rank);
    quiesce_memory(comm);
}

/* Suspects a rank of this host that was silent. A rank that a debugger holds is checked again when
 * it has been silent for the same time once more. */
static void suspect(struct muster_comm *comm, int rank)
{
    assert(rank != comm->rank && comm->peers[rank].local >= 0);
    if (peers_is_traced(comm, rank)) {
        comm->peers[rank].silent_beats = 0;
    } else {
        atomic_store_explicit(&comm->peers[rank].state, MUSTER_PEER_SUSPECTED,
                              memory_order_release);
    }
}

void failure_close(struct muster_comm *comm, int code)
{
    end(comm, COMM_CLOSING, code);
}

void failure_leave(struct muster_comm *comm)
{
    end(comm, COMM_LEAVING, MUSTER_EABORTED);
}

void failure_beat(void *context)
{
    struct muster_comm *comm = context;
    atomic_fetch_add_explicit(&comm->control->heartbeat.beats, 1, memory_order_relaxed);
    for (int l = 0; l < comm->local_size && comm->heartbeat_timeout_ms > 0; l++) {
        struct peer *peer = &comm->peers[comm->locals[l]];
        uint32_t beats = atomic_load_explicit(&segment_control(&comm->segment, l)->heartbeat.beats,
                                              memory_order_relaxed);
        peer->heard = peer->heard || beats != 0;
        peer->silent_beats = peer->heard && beats == peer->beats ? peer->silent_beats + 1 : 0;
        peer->beats = beats;
        if (l != comm->local_rank &&
            peer->silent_beats * HEARTBEAT_MS >= comm->heartbeat_timeout_ms) {
            suspect(comm, comm->locals[l]);
        }
    }
    link_beat(comm);
}
