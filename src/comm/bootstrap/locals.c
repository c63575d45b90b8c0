/* Creates, hands out and maps the segment of a host. Then each rank writes into it that it lives,
 * and on which processor it runs. Layer: comm; see locals.h.
 */
#include "comm/bootstrap/locals.h"

#include "comm/endpoint/credentials.h"
#include "comm/health/failure.h"
#include "comm/shm/futex.h"
#include "comm/state/bell.h"
#include "comm/tcp/link.h"

#include <assert.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the first rank of this host that has not come for the segment; -1: all have. */
static int first_missing(const struct muster_comm *comm, const bool *came)
{
    int l = 1;
    while (l < comm->local_size && came[l]) {
        l++;
    }
    return l < comm->local_size ? comm->locals[l] : -1;
}

/* Hands the segment to a rank of this host. A process of another user, or one that did not come by
 * the Unix socket, is refused: the rank itself may still come. */
static int hand_out(struct forming *f, int fd, int rank, bool *came, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    int r = 0;
    if (credentials_are_ours(fd)) {
        r = endpoint_pass(fd, comm->segment.fd, err);
        r = r < 0 ? forming_blame(f, rank, r, err) : 0;
        assert(comm->peers[rank].local > 0 && comm->peers[rank].local < comm->local_size);
        came[comm->peers[rank].local] = true;
    } else {
        r = forming_wait(f, -1, 0, 0, rank, err);
    }
    close(fd);
    return r;
}

static int lead_host(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    bool came[MUSTER_MAX_RANKS] = {false};
    assert(comm->locals[0] == comm->rank);
    int missing, r = segment_create(comm->local_size, &comm->segment, err);
    while (r == 0 && (missing = first_missing(comm, came)) >= 0) {
        struct hello hello;
        struct arrivals *arrivals = &f->endpoint->arrivals;
        int fd = arrivals_next(arrivals, comm->generation, f->digest, 0, &hello, err);
        if (fd == MUSTER_EAGAIN) {
            r = forming_wait(f, arrivals->epoll_fd, POLLIN, FORMING_SLICE_MS, missing, err);
            continue;
        }
        if (fd < 0) {
            return fd;
        }
        if (hello.index < comm->size && comm->peers[hello.index].local > 0) {
            r = hand_out(f, fd, hello.index, came, err);
        } else {
            r = link_adopt(comm, fd, hello.index, hello.channel, err);
        }
    }
    return r;
}

static int refuse_leader(int leader, struct muster_err *err)
{
    muster_fail(err, MUSTER_EPERM,
                credentials_are_shared()
                    ? "rank %d on this host cannot be told from other users: user 65534 (nobody) "
                      "stands for them all in this user namespace (run as another user, or set "
                      "MUSTER_TRANSPORT=tcp for all)"
                    : "rank %d on this host runs as another user: ranks of several users share no "
                      "memory (set MUSTER_TRANSPORT=tcp for all)",
                leader);
    if (err) {
        err->rank = leader;
    }
    return MUSTER_EPERM;
}

static int receive_segment(struct forming *f, int leader, struct muster_err *err)
{
    int fd, r = 0;
    while ((fd = endpoint_receive(f->under_way, err)) == MUSTER_EAGAIN && r == 0) {
        r = forming_wait(f, f->under_way, POLLIN, FORMING_SLICE_MS, leader, err);
    }
    if (fd == MUSTER_EUNAVAIL) {
        return forming_blame(f, leader, fd, err);
    }
    if (r < 0 && fd >= 0) {
        close(fd);
    }
    return r < 0 ? r : fd;
}

static int follow_host(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    int leader = comm->locals[0];
    assert(leader < comm->rank);
    int from = forming_connect(f, leader, 0, err);
    if (from < 0) {
        return from;
    }
    f->under_way = from;
    int fd =
        credentials_are_ours(from) ? receive_segment(f, leader, err) : refuse_leader(leader, err);
    fork_close(&f->under_way);
    return fd < 0 ? fd : segment_open(fd, comm->local_size, &comm->segment, err);
}

int locals_join(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    int r = comm->local_rank == 0 ? lead_host(f, err) : follow_host(f, err);
    if (r < 0) {
        return r;
    }
    comm->control = segment_control(&comm->segment, comm->local_rank);
    uint64_t pid_space = endpoint_member(&f->members[comm->rank]).pid_space;
    comm->reads = comm->all_local;
    for (int rank = 0; rank < comm->size; rank++) {
        comm->peers[rank].killable = pid_space != 0 && comm->peers[rank].local >= 0 &&
                                     endpoint_member(&f->members[rank]).pid_space == pid_space;
        comm->reads = comm->reads && comm->peers[rank].killable;
    }
    return 0;
}

static void tell_processors(const struct muster_comm *comm)
{
    struct control *control = comm->control;
    uint64_t words[CPU_WORDS] = {0};
    _Static_assert(sizeof words == sizeof(cpu_set_t), "1024 processors");
    (void)sched_getaffinity(0, sizeof words, (cpu_set_t *)(void *)words);
    for (int w = 0; w < CPU_WORDS; w++) {
        atomic_store(&control->processors[w], words[w]);
    }
    atomic_store(&control->processor, (uint32_t)comm->processor);
}

/* Whether there are more ranks than processors on which any of them may run. */
static bool is_oversubscribed(const struct muster_comm *comm)
{
    int processors = 0;
    for (int w = 0; w < CPU_WORDS; w++) {
        uint64_t word = 0;
        for (int l = 0; l < comm->local_size; l++) {
            word |= atomic_load(&segment_control(&comm->segment, l)->processors[w]);
        }
        processors += __builtin_popcountll(word);
    }
    return comm->local_size > processors;
}

/* All ranks of a host must use the same blocks, even if one runs under an emulator. */
static enum schedule_processor common_processor(const struct muster_comm *comm)
{
    for (int l = 0; l < comm->local_size; l++) {
        if (atomic_load(&segment_control(&comm->segment, l)->processor) != comm->processor) {
            return SCHEDULE_GENERIC;
        }
    }
    return comm->processor;
}

static void describe(struct muster_comm *comm)
{
    (void)snprintf(comm->description, sizeof comm->description,
                   "%d rank%s, %d on this host%s, %s%s%s, tuned for %s", comm->size,
                   comm->size == 1 ? "" : "s", comm->local_size,
                   comm->oversubscribed ? " (more than processors)" : "",
                   comm->local_size > 1 ? "shared memory, " : "", comm->all_local ? "" : "TCP, ",
                   reduce_instruction_set(), comm->tuning->name);
}

/* Sleeps, so that ranks that are still starting get the processors. */
static int wait_for_locals(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    _Atomic uint32_t *bell = &comm->control->bell;
    int r = 0;
    for (int l = 0; r == 0 && l < comm->local_size;) {
        uint32_t seen = atomic_load(bell);
        if (atomic_load(&segment_control(&comm->segment, l)->pid) != 0) {
            l++;
        } else {
            futex_wait_any(&bell, &seen, 1, f->patient ? FORMING_SLICE_MS : FORMING_FIRST_MS);
            r = forming_wait(f, -1, 0, 0, comm->locals[l], err);
        }
    }
    return r;
}

/* Fills in the flight record, so that `muster stacks` can read it. */
static void open_flight_record(const struct forming *f)
{
    const struct muster_comm *comm = f->comm;
    struct flight *flight = &comm->control->flight;
    flight->group = f->digest ^ (comm->generation + 1) * 0x9e3779b97f4a7c15u;
    flight->rank = comm->rank;
    flight->size = comm->size;
    flight->local_size = comm->local_size;
    flight->pid = getpid();
    atomic_store(&flight->magic, flight_magic);
}

int locals_come_alive(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    assert(phase_of(&comm->life) == COMM_FORMING && comm->control);
    comm->watch = (struct heartbeat_watch){.beat = failure_beat, .context = comm};
    int r = heartbeat_join(&comm->control->heartbeat, &comm->watch, err);
    if (r < 0) {
        return r;
    }
    phase_open(&comm->life);
    tell_processors(comm);
    open_flight_record(f);
    atomic_store(&comm->control->pid, getpid());
    for (int l = 0; l < comm->local_size; l++) {
        bell_ring(segment_control(&comm->segment, l));
    }
    r = wait_for_locals(f, err);
    comm->oversubscribed = is_oversubscribed(comm);
    comm->tuning = &schedule_tunings[common_processor(comm)];
    describe(comm);
    return r;
}
