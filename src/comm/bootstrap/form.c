/* Forms a communicator from a list of members. The ranks of each host share a segment (locals.c).
 * Between hosts, the rank with the higher index connects to the one with the lower. A barrier at
 * the end makes sure that success means that all have come.
 *
 * Layer: comm. Memory: the new communicator. Thread: the caller's.
 */
#include "comm/bootstrap/form.h"

#include "comm/api/comm.h"
#include "comm/bootstrap/locals.h"
#include "comm/health/witness.h"
#include "comm/messages/message.h"
#include "comm/system/deadline.h"
#include "comm/system/processor.h"
#include "comm/system/sized.h"
#include "comm/tcp/link.h"
#include "core/hash.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

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
        assert(f->hosts[f->hosts[r]] == f->hosts[r]); /* is the lowest of its host */
    }
}

static int connect_lower(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    for (int rank = 0; rank < comm->rank; rank++) {
        for (int channel = 0; comm->peers[rank].local < 0 && channel < LINK_CHANNELS; channel++) {
            int fd = forming_connect(f, rank, channel, err);
            int r = fd < 0 ? fd : link_adopt(comm, fd, rank, channel, err);
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

static int accept_higher(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    int missing, r = 0;
    while (r == 0 && (missing = link_find_missing(comm)) >= 0) {
        struct hello hello;
        struct arrivals *arrivals = &f->endpoint->arrivals;
        int fd = arrivals_next(arrivals, comm->generation, f->digest, 0, &hello, err);
        if (fd == MUSTER_EAGAIN) {
            r = forming_wait(f, arrivals->epoll_fd, POLLIN, FORMING_SLICE_MS, missing, err);
        } else {
            r = fd < 0 ? fd : link_adopt(comm, fd, hello.index, hello.channel, err);
        }
    }
    return r;
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

/* Whether forming must end; the barrier asks this. */
static int has_had_enough(void *context)
{
    const struct forming *f = context;
    const struct muster_comm_options *o = f->options;
    return forming_is_cancelled(f) || (o->interrupted && o->interrupted(o->interrupted_context));
}

/* Runs the barrier, which must not wait longer than forming may. */
static int meet(struct forming *f, struct muster_err *err)
{
    struct muster_comm *comm = f->comm;
    int64_t timeout_ms = atomic_load(&comm->timeout_ms);
    int64_t left_ms = (f->deadline_ns - deadline_now_ns()) / 1000000;
    atomic_store(&comm->timeout_ms, left_ms < 0 ? 0 : left_ms);
    comm->interrupted = has_had_enough;
    comm->interrupted_context = f;
    int r = muster_barrier(comm, err);
    comm->interrupted = f->options->interrupted;
    comm->interrupted_context = f->options->interrupted_context;
    atomic_store(&comm->timeout_ms, timeout_ms);
    return r == MUSTER_EINTERRUPTED && forming_is_cancelled(f) ? forming_fail_cancelled(err) : r;
}

/* Not called while others are watched: the witness starts with copies of our descriptors, so that
 * the watched ranks would see our connections end only when the witness has closed its copies. */
static void be_witnessed(struct muster_comm *comm)
{
    assert(!comm->witnessed);
    witness_hold();
    comm->witnessed = true;
}

static int form_all(struct forming *f, struct muster_err *err)
{
    int r = check_transport(f, err);
    r = r < 0 ? r : processor_find(&f->comm->processor, err);
    r = r < 0 ? r : link_init(f->comm, err);
    r = r < 0 ? r : connect_lower(f, err);
    r = r < 0 ? r : locals_join(f, err);
    r = r < 0 ? r : message_init(f->comm, err);
    r = r < 0 ? r : accept_higher(f, err);
    r = r < 0 ? r : locals_come_alive(f, err);
    forming_unwatch(f);
    assert(r < 0 || link_find_missing(f->comm) < 0);
    if (r == 0) {
        message_open(f->comm);
    }
    if (r == 0 && !f->comm->all_local) {
        be_witnessed(f->comm);
    }
    r = r < 0 ? r : meet(f, err);
    /* A rank that has passed the barrier stopped watching us before that. */
    arrivals_sweep(&f->endpoint->arrivals);
    return r;
}

/* Tells the ranks that have connected that our process has not died, and which rank is gone if we
 * know it. */
static void give_up(const struct forming *f)
{
    if (phase_of(&f->comm->life) == COMM_FORMING) {
        link_say_closed(f->comm, f->gone < 0 ? 0 : f->gone + 1);
    }
}

/* Returns a member that is in the list twice; -1: there is none. */
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

static int check_members(const struct muster_endpoint *endpoint,
                         const struct muster_member *members, int size, int my_index,
                         struct muster_err *err)
{
    if (size < 1 || size > MUSTER_MAX_RANKS) {
        return muster_fail(err, MUSTER_EINVAL, "rank %d of %d: a world has 1 to %d ranks", my_index,
                           size, MUSTER_MAX_RANKS);
    }
    if (my_index < 0 || my_index >= size) {
        return muster_fail(err, MUSTER_EINVAL, "rank %d of %d: ranks are 0 to %d", my_index, size,
                           size - 1);
    }
    for (int rank = 0; rank < size; rank++) {
        if (!endpoint_member_ok(&members[rank])) {
            return muster_fail(err, MUSTER_EDATA, "member %d is not of this version of muster",
                               rank);
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
    return twin < 0 ? 0 : muster_fail(err, MUSTER_EINVAL, "member %d is in the list twice", twin);
}

int form_comm(struct muster_endpoint *endpoint, const struct muster_member *members, int size,
              int my_index, uint64_t generation, int64_t deadline_ns,
              const struct muster_comm_options *options, const struct forming_watch *watch,
              struct muster_comm **ret, struct muster_err *err)
{
    int r = check_members(endpoint, members, size, my_index, err);
    if (r < 0) {
        return r;
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
    forming_open(&f);
    r = form_all(&f, err);
    forming_close(&f);
    if (r < 0) {
        give_up(&f);
        muster_comm_free(f.comm);
        return r;
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
    int r = sized_check_err(err);
    r = r == 0 && options ? sized_read(&sized_options, &own, options, err) : r;
    return r < 0 ? r
                 : form_comm(endpoint, members, size, my_index, generation,
                             deadline_after_ms(timeout_ms), &own, NULL, ret, err);
}
