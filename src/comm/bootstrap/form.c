/* Forming a communicator from a list of members. On each host the lowest member creates the segment
 * and hands it to those that connect; between hosts the higher index connects to the lower. Then
 * one barrier, so that success means that all have come.
 *
 * Layer: comm. Memory: the new communicator. Thread: the caller's.
 */
#include "comm/bootstrap/form.h"

#include "comm/api/comm.h"
#include "comm/endpoint/credentials.h"
#include "comm/endpoint/endpoint.h"
#include "comm/health/failure.h"
#include "comm/health/witness.h"
#include "comm/messages/message.h"
#include "comm/shm/futex.h"
#include "comm/state/bell.h"
#include "comm/system/deadline.h"
#include "comm/system/processor.h"
#include "comm/system/sized.h"
#include "comm/tcp/link.h"
#include "core/hash.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ACCEPT_SLICE_MS = 20,
    CONNECT_SLICE_MS = 4000, /* a neighbour is found absent after 3 s */
};

struct forming {
    struct muster_endpoint *endpoint;
    struct muster_comm *comm;
    const struct muster_member *members;
    uint64_t digest;
    int64_t deadline_ns;
    const struct muster_comm_options *options;
    const struct form_watch *watch;
    int hosts[COMM_MAX_RANKS]; /* lowest rank on each rank's host */
};

static void find_hosts(struct forming *f, int size)
{
    for (int r = 0; r < size; r++) {
        struct member member = endpoint_member(&f->members[r]);
        f->hosts[r] = r;
        for (int other = 0; other < r; other++) {
            struct member lower = endpoint_member(&f->members[other]);
            if (memcmp(member.host, lower.host, sizeof member.host) == 0) {
                f->hosts[r] = other;
                break;
            }
        }
    }
}

/* Negative once forming must end, though this rank has not come. */
static int late(const struct forming *f, int rank, struct muster_err *err)
{
    if (deadline_now_ns() >= f->deadline_ns) {
        muster_fail(err, MUSTER_ETIMEDOUT, "rank %d of %d did not connect in time", rank,
                    f->comm->size);
        if (err) {
            err->rank = rank;
        }
        return MUSTER_ETIMEDOUT;
    }
    if (f->options->interrupted && f->options->interrupted(f->options->interrupted_context)) {
        return muster_fail(err, MUSTER_EINTERRUPTED, "interrupted while forming a communicator");
    }
    return f->watch ? f->watch->check(f->watch->context, err) : 0;
}

static struct hello hello_of(const struct forming *f, int channel)
{
    return (struct hello){.magic = HELLO_MAGIC,
                          .index = (uint16_t)f->comm->rank,
                          .channel = (uint16_t)channel,
                          .generation = f->comm->generation,
                          .digest = f->digest};
}

/* ---- the segment of this host ---- */

/* Of this host, as far as they have the segment. */
static int first_missing(const struct muster_comm *comm, const bool *came)
{
    int l = 1;
    while (l < comm->local_size && came[l]) {
        l++;
    }
    return l < comm->local_size ? comm->locals[l] : -1;
}

/* The segment, for a rank of this host. Who is another user, or did not come by the Unix socket, is
 * none: the rank itself may still come. */
static int hand_out(struct forming *f, int fd, int rank, bool *came, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    int rc = 0;
    if (credentials_are_ours(fd)) {
        rc = endpoint_pass(fd, comm->segment.fd, err);
        came[comm->peers[rank].local] = true;
    } else {
        rc = late(f, rank, err);
    }
    close(fd);
    return rc;
}

static int lead_host(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    bool came[COMM_MAX_RANKS] = {false};
    int missing, rc = segment_create(comm->local_size, &comm->segment, err);
    while (rc == 0 && (missing = first_missing(comm, came)) >= 0) {
        struct hello hello;
        int fd = arrivals_next(&f->endpoint->arrivals, comm->generation, f->digest, ACCEPT_SLICE_MS,
                               &hello, err);
        if (fd == MUSTER_EAGAIN) {
            rc = late(f, missing, err);
            continue;
        }
        if (fd < 0) {
            return fd;
        }
        if (hello.index < comm->size && comm->peers[hello.index].local > 0) {
            rc = hand_out(f, fd, hello.index, came, err);
        } else {
            rc = link_adopt(comm, fd, hello.index, hello.channel, err);
        }
    }
    return rc;
}

static int refuse_leader(int leader, struct muster_err *err)
{
    muster_fail(err, MUSTER_EPERM,
                "rank %d on this host runs as another user: ranks of several users share no "
                "memory (set MUSTER_TRANSPORT=tcp for all)",
                leader);
    if (err) {
        err->rank = leader;
    }
    return MUSTER_EPERM;
}

static int follow_host(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    struct member leader = endpoint_member(&f->members[comm->locals[0]]);
    struct hello hello = hello_of(f, 0);
    int from = endpoint_connect(&leader, true, &hello, f->deadline_ns, err);
    if (from < 0) {
        return from;
    }
    if (!credentials_are_ours(from)) {
        close(from);
        return refuse_leader(comm->locals[0], err);
    }
    int fd;
    int rc = 0;
    while ((fd = endpoint_receive(from, err)) == MUSTER_EAGAIN && rc == 0) {
        struct pollfd p = {.fd = from, .events = POLLIN};
        rc = poll(&p, 1, ACCEPT_SLICE_MS) <= 0 ? late(f, comm->locals[0], err) : 0;
    }
    close(from);
    rc = rc < 0 ? rc : fd < 0 ? fd : 0;
    return rc < 0 ? rc : segment_open(fd, comm->local_size, &comm->segment, err);
}

static int join_host(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    int rc = comm->local_rank == 0 ? lead_host(f, err) : follow_host(f, err);
    if (rc < 0) {
        return rc;
    }
    comm->control = segment_control(&comm->segment, comm->local_rank);
    uint64_t pid_space = endpoint_member(&f->members[comm->rank]).pid_space;
    for (int r = 0; r < comm->size; r++) {
        comm->peers[r].killable = pid_space != 0 && comm->peers[r].local >= 0 &&
                                  endpoint_member(&f->members[r]).pid_space == pid_space;
    }
    return 0;
}

static void tell_processors(struct control *control)
{
    uint64_t words[CPU_WORDS] = {0};
    _Static_assert(sizeof words == sizeof(cpu_set_t), "1024 processors");
    (void)sched_getaffinity(0, sizeof words, (cpu_set_t *)(void *)words);
    for (int w = 0; w < CPU_WORDS; w++) {
        atomic_store(&control->processors[w], words[w]);
    }
    atomic_store(&control->intel, processor_is_intel());
}

/* More ranks than processors that any of them may run on. */
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

/* All must take the same blocks, even if one runs under an emulator. */
static bool is_intel(const struct muster_comm *comm)
{
    bool all = true;
    for (int l = 0; l < comm->local_size; l++) {
        all = all && atomic_load(&segment_control(&comm->segment, l)->intel) == 1;
    }
    return all;
}

static void describe(struct muster_comm *comm)
{
    (void)snprintf(comm->description, sizeof comm->description,
                   "%d rank%s, %d on this host%s, %s%s%s", comm->size, comm->size == 1 ? "" : "s",
                   comm->local_size, comm->oversubscribed ? " (more than processors)" : "",
                   comm->local_size > 1 ? "shared memory, " : "", comm->all_local ? "" : "TCP, ",
                   reduce_level());
}

/* Asleep, so that those who are still on their way get the processors. */
static int wait_for_locals(const struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    _Atomic uint32_t *bell = &comm->control->bell;
    int rc = 0;
    for (int l = 0; rc == 0 && l < comm->local_size;) {
        uint32_t seen = atomic_load(bell);
        if (atomic_load(&segment_control(&comm->segment, l)->pid) != 0) {
            l++;
        } else {
            futex_wait_any(&bell, &seen, 1, ACCEPT_SLICE_MS);
            rc = late(f, comm->locals[l], err);
        }
    }
    return rc;
}

/* So that `muster stacks` can read it. */
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

/* From here on others may see us die. */
static int come_alive(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    comm->watch = (struct life_watch){.beat = failure_beat, .context = comm};
    int rc = life_join(&comm->control->life, &comm->watch, err);
    if (rc < 0) {
        return rc;
    }
    phase_open(&comm->life);
    if (!comm->all_local) {
        witness_hold();
        comm->witnessed = true;
    }
    tell_processors(comm->control);
    open_flight_record(f);
    atomic_store(&comm->control->pid, getpid());
    for (int l = 0; l < comm->local_size; l++) {
        bell_ring(segment_control(&comm->segment, l));
    }
    rc = wait_for_locals(f, err);
    comm->oversubscribed = is_oversubscribed(comm);
    comm->intel = is_intel(comm);
    describe(comm);
    return rc;
}

/* ---- the other hosts ---- */

/* In slices: no signal ends the connecting, but the user may have had enough of it. */
static int connect_to(const struct forming *f, int rank, const struct member *member,
                      const struct hello *hello, struct muster_err *err)
{
    int fd, rc = 0;
    do {
        int64_t slice_ns = deadline_after_ms(CONNECT_SLICE_MS);
        fd = endpoint_connect(member, false, hello,
                              slice_ns < f->deadline_ns ? slice_ns : f->deadline_ns, err);
        rc = fd == MUSTER_ETIMEDOUT ? late(f, rank, err) : 0;
    } while (rc == 0 && fd == MUSTER_ETIMEDOUT);
    return rc < 0 ? rc : fd;
}

static int connect_lower(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    for (int r = 0; r < comm->rank; r++) {
        struct member member = endpoint_member(&f->members[r]);
        uint32_t scope = endpoint_member(&f->members[comm->rank]).scope;
        member.scope = scope ? scope : member.scope; /* each host numbers its interfaces itself */
        for (int channel = 0; comm->peers[r].local < 0 && channel < LINK_CHANNELS; channel++) {
            struct hello hello = hello_of(f, channel);
            int fd = connect_to(f, r, &member, &hello, err);
            int rc = fd < 0 ? fd : link_adopt(comm, fd, r, channel, err);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

static int accept_higher(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    int missing, rc = 0;
    while (rc == 0 && (missing = link_find_missing(comm)) >= 0) {
        struct hello hello;
        int fd = arrivals_next(&f->endpoint->arrivals, comm->generation, f->digest, ACCEPT_SLICE_MS,
                               &hello, err);
        if (fd == MUSTER_EAGAIN) {
            rc = late(f, missing, err);
        } else {
            rc = fd < 0 ? fd : link_adopt(comm, fd, hello.index, hello.channel, err);
        }
    }
    return rc;
}

static int check_transport(const struct forming *f, struct muster_err *err)
{
    const char *asked = f->options->transport;
    const char *transport = asked ? asked : getenv("MUSTER_TRANSPORT");
    if (transport && strcmp(transport, "shm") == 0 && !f->comm->all_local) {
        return muster_fail(err, MUSTER_EUNSUPPORTED,
                           "transport shm, but not all ranks can share memory: use auto");
    }
    return 0;
}

/* The barrier that ends forming must not wait longer than forming may. */
static int meet(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    int64_t timeout_ms = atomic_load(&comm->timeout_ms);
    int64_t left_ms = (f->deadline_ns - deadline_now_ns()) / 1000000;
    atomic_store(&comm->timeout_ms, left_ms < 0 ? 0 : left_ms);
    int rc = muster_barrier(comm, err);
    atomic_store(&comm->timeout_ms, timeout_ms);
    return rc;
}

static int form_all(struct forming *f, struct muster_err *err)
{
    int rc = check_transport(f, err);
    rc = rc < 0 ? rc : link_init(f->comm, err);
    rc = rc < 0 ? rc : connect_lower(f, err);
    rc = rc < 0 ? rc : join_host(f, err);
    rc = rc < 0 ? rc : message_init(f->comm, err);
    rc = rc < 0 ? rc : accept_higher(f, err);
    rc = rc < 0 ? rc : come_alive(f, err);
    return rc < 0 ? rc : meet(f, err);
}

/* A member that is in the list before; -1: none. */
static int find_twin(const struct muster_member *members, int size)
{
    for (int r = 1; r < size; r++) {
        struct member member = endpoint_member(&members[r]);
        for (int other = 0; other < r; other++) {
            struct member lower = endpoint_member(&members[other]);
            if (memcmp(member.incarnation, lower.incarnation, sizeof lower.incarnation) == 0) {
                return r;
            }
        }
    }
    return -1;
}

int form_comm(struct muster_endpoint *endpoint, const struct muster_member *members, int size,
              int my_index, uint64_t generation, int64_t deadline_ns,
              const struct muster_comm_options *options, const struct form_watch *watch,
              struct muster_comm **ret, struct muster_err *err)
{
    if (size < 1 || size > COMM_MAX_RANKS || my_index < 0 || my_index >= size) {
        return muster_fail(err, MUSTER_EINVAL, "rank %d of %d: a world has 1 to %d ranks", my_index,
                           size, COMM_MAX_RANKS);
    }
    for (int r = 0; r < size; r++) {
        if (!endpoint_member_ok(&members[r])) {
            return muster_fail(err, MUSTER_EDATA, "member %d is not of this version of muster", r);
        }
    }
    struct member self = endpoint_member(&members[my_index]);
    if (memcmp(self.incarnation, endpoint->self.incarnation, sizeof self.incarnation) != 0) {
        return muster_fail(err, MUSTER_EINVAL, "member %d of the list is not this endpoint",
                           my_index);
    }
    if (endpoint->arrivals.epoll_fd < 0) {
        return muster_fail(err, MUSTER_EINVAL, "this process was forked: open its own endpoint");
    }
    int twin = find_twin(members, size);
    if (twin >= 0) {
        return muster_fail(err, MUSTER_EINVAL, "member %d is in the list twice", twin);
    }
    struct forming f = {.endpoint = endpoint,
                        .members = members,
                        .digest = hash_bytes(HASH_START, members, (size_t)size * sizeof *members),
                        .deadline_ns = deadline_ns,
                        .options = options,
                        .watch = watch};
    find_hosts(&f, size);
    f.comm = comm_new(my_index, size, f.hosts, options);
    if (!f.comm) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a communicator");
    }
    f.comm->generation = generation;
    int rc = form_all(&f, err);
    if (rc < 0) {
        muster_comm_free(f.comm);
        return rc;
    }
    *ret = f.comm;
    return 0;
}

int muster_comm_form(struct muster_endpoint *endpoint, const struct muster_member *members,
                     int size, int my_index, uint64_t generation, int64_t timeout_ms,
                     const struct muster_comm_options *options, struct muster_comm **ret,
                     struct muster_err *err)
{
    struct muster_comm_options own = MUSTER_COMM_OPTIONS_INIT;
    int rc = sized_check_err(err);
    rc = rc == 0 && options ? sized_read(&sized_options, &own, options, err) : rc;
    return rc < 0 ? rc
                  : form_comm(endpoint, members, size, my_index, generation,
                              deadline_after_ms(timeout_ms), &own, NULL, ret, err);
}
