/* Waits while a communicator forms. Layer: comm; see forming.h. */
#include "comm/bootstrap/forming.h"

#include "comm/endpoint/address.h"
#include "comm/system/deadline.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    WATCH_AT_ONCE = 16, /* in a large world the others are watched later */
    BLAME_MS = 200,     /* the time that other hosts have to refuse a connection */
};

void forming_unwatch(struct forming *f)
{
    for (int r = 0; r < MUSTER_MAX_RANKS; r++) {
        fork_close(&f->watches[r]);
    }
}

static void close_all(void *context)
{
    struct forming *f = context;
    fork_close(&f->under_way);
    forming_unwatch(f);
}

void forming_open(struct forming *f)
{
    assert(f->endpoint && f->comm && f->members && f->options);
    f->under_way = f->gone = -1;
    for (int r = 0; r < MUSTER_MAX_RANKS; r++) {
        f->watches[r] = -1;
    }
    f->fork = (struct fork_watch){.forked = close_all, .context = f};
    fork_remember(&f->fork);
}

void forming_close(struct forming *f)
{
    fork_forget(&f->fork);
    close_all(f);
}

/* Returns what this rank sends first on a connection. */
static struct hello make_hello(const struct forming *f, int channel)
{
    assert(channel >= 0 && channel <= UINT16_MAX);
    return (struct hello){.magic = HELLO_MAGIC,
                          .index = (uint16_t)f->comm->rank,
                          .channel = (uint16_t)channel,
                          .generation = f->comm->generation,
                          .digest = f->digest};
}

static int fail_about(int code, int rank, struct muster_err *err)
{
    if (err) {
        err->rank = rank;
    }
    return code;
}

bool forming_is_cancelled(const struct forming *f)
{
    return endpoint_is_cancelled(f->endpoint, f->comm->generation);
}

int forming_fail_cancelled(struct muster_err *err)
{
    return muster_fail(err, MUSTER_EABORTED, "forming this generation was cancelled");
}

/* ---- members that are gone ---- */

static bool is_local(const struct forming *f, int rank)
{
    return f->comm->peers[rank].local >= 0;
}

static int begin(const struct forming *f, int rank)
{
    struct member member = endpoint_member(&f->members[rank]);
    uint32_t scope = endpoint_member(&f->members[f->comm->rank]).scope;
    member.scope = scope ? scope : member.scope; /* each host numbers its interfaces itself */
    return endpoint_begin(&member, is_local(f, rank));
}

static int fail_gone(struct forming *f, int rank, struct muster_err *err)
{
    assert(rank != f->comm->rank);
    muster_fail(err, MUSTER_EUNAVAIL,
                "rank %d of %d is gone: its process or its endpoint has ended", rank,
                f->comm->size);
    f->gone = rank;
    return fail_about(MUSTER_EUNAVAIL, rank, err);
}

/* Connects to a member. If nobody listens there any more, the member has ended, and its incarnation
 * does not return. */
static int watch(struct forming *f, int rank, struct muster_err *err)
{
    assert(rank != f->comm->rank && f->watches[rank] < 0);
    f->watches[rank] = begin(f, rank);
    return f->watches[rank] < 0 && errno == ECONNREFUSED ? fail_gone(f, rank, err) : 0;
}

static int watch_more(struct forming *f, int first, struct muster_err *err)
{
    int r = 0, opened = 0;
    for (int i = 0; r == 0 && i < f->comm->size && opened < WATCH_AT_ONCE; i++) {
        int rank = (first + i) % f->comm->size;
        if (rank != f->comm->rank && f->watches[rank] < 0) {
            r = watch(f, rank, err);
            opened++;
        }
    }
    return r;
}

/* Connects again after the connection has ended. A member that lives may have closed it: only if
 * the next connection is refused is the member known to be gone. */
static int watch_anew(struct forming *f, int rank, struct muster_err *err)
{
    int failed = 0;
    socklen_t bytes = sizeof failed;
    (void)getsockopt(f->watches[rank], SOL_SOCKET, SO_ERROR, &failed, &bytes);
    fork_close(&f->watches[rank]);
    return failed == ECONNREFUSED ? fail_gone(f, rank, err) : watch(f, rank, err);
}

/* Lists the connections to the members, from fds[1] on, and their ranks. */
static int list_watches(const struct forming *f, struct pollfd *fds, int *ranks)
{
    int num = 1;
    for (int r = 0; r < f->comm->size; r++) {
        if (f->watches[r] >= 0) {
            fds[num] = (struct pollfd){.fd = f->watches[r], .events = POLLIN};
            ranks[num++] = r;
        }
    }
    assert(num <= f->comm->size); /* no rank watches itself */
    return num;
}

static int look_at_watches(struct forming *f, const struct pollfd *fds, const int *ranks, int num,
                           struct muster_err *err)
{
    int r = 0;
    for (int i = 1; r == 0 && i < num; i++) {
        r = fds[i].revents ? watch_anew(f, ranks[i], err) : 0;
    }
    return r;
}

int forming_blame(struct forming *f, int rank, int r, struct muster_err *err)
{
    assert(r < 0);
    int64_t end_ns = deadline_after_ms(BLAME_MS);
    int found = 0;
    for (int peer = 0; found == 0 && !f->watch && peer < f->comm->size; peer++) {
        fork_close(&f->watches[peer]);
        found = peer == f->comm->rank ? 0 : watch(f, peer, err);
    }
    for (int peer = 0; found == 0 && peer < f->comm->size; peer++) {
        bool refused = f->watches[peer] >= 0 && address_finish(f->watches[peer], end_ns) < 0 &&
                       errno == ECONNREFUSED;
        found = refused ? fail_gone(f, peer, err) : 0;
    }
    return found < 0 ? found : fail_about(r, rank, err);
}

/* ---- waiting ---- */

static int check(const struct forming *f, int rank, struct muster_err *err)
{
    if (forming_is_cancelled(f)) {
        return forming_fail_cancelled(err);
    }
    if (deadline_now_ns() >= f->deadline_ns) {
        muster_fail(err, MUSTER_ETIMEDOUT, "rank %d of %d did not connect in time", rank,
                    f->comm->size);
        return fail_about(MUSTER_ETIMEDOUT, rank, err);
    }
    return 0;
}

/* Makes the checks that are skipped while there is something to do. */
static int check_others(struct forming *f, struct muster_err *err)
{
    if (f->options->interrupted && f->options->interrupted(f->options->interrupted_context)) {
        return muster_fail(err, MUSTER_EINTERRUPTED, "interrupted while forming a communicator");
    }
    return f->watch ? f->watch->check(f->watch->context, err) : 0;
}

int forming_wait(struct forming *f, int fd, short events, int most_ms, int rank,
                 struct muster_err *err)
{
    struct pollfd fds[MUSTER_MAX_RANKS + 1] = {{.fd = fd, .events = events}};
    int ranks[MUSTER_MAX_RANKS + 1], num = 1;
    assert(rank >= 0 && rank < f->comm->size && most_ms >= 0);
    int r = check(f, rank, err);
    f->patient = f->patient || most_ms == 0; /* the caller has waited already */
    if (r == 0 && f->patient && !f->watch) {
        r = watch_more(f, rank, err);
        num = list_watches(f, fds, ranks);
    }
    if (r < 0) {
        return r;
    }
    int slice_ms = f->patient || most_ms < FORMING_FIRST_MS ? most_ms : FORMING_FIRST_MS;
    int left_ms = deadline_ms_left(f->deadline_ns) + 1;
    (void)poll(fds, (nfds_t)num, slice_ms < left_ms ? slice_ms : left_ms);
    if (fds[0].revents) {
        return 0;
    }
    f->patient = true;
    r = look_at_watches(f, fds, ranks, num, err);
    return r < 0 ? r : check_others(f, err);
}

/* Waits until the kernel has answered whether the connection is made. */
static int wait_for_answer(struct forming *f, int rank, struct muster_err *err)
{
    int r = 0;
    for (bool decided = false; r == 0 && !decided;) {
        struct pollfd p = {.fd = f->under_way, .events = POLLOUT};
        decided = poll(&p, 1, 0) > 0;
        r = decided ? 0 : forming_wait(f, f->under_way, POLLOUT, FORMING_SLICE_MS, rank, err);
    }
    return r;
}

static int fail_connecting(struct forming *f, int rank, struct muster_err *err)
{
    return errno == ECONNREFUSED ? fail_gone(f, rank, err)
                                 : fail_about(endpoint_fail(is_local(f, rank), err), rank, err);
}

int forming_connect(struct forming *f, int rank, int channel, struct muster_err *err)
{
    assert(f->under_way < 0 && rank != f->comm->rank);
    int r = 0;
    while ((f->under_way = begin(f, rank)) < 0 && errno == EAGAIN && r == 0) {
        r = forming_wait(f, -1, 0, 1, rank, err);
    }
    if (r == 0 && f->under_way < 0) {
        return fail_connecting(f, rank, err);
    }
    r = r < 0 ? r : wait_for_answer(f, rank, err);
    if (r == 0 && address_finish(f->under_way, 0) < 0) {
        r = fail_connecting(f, rank, err);
    }
    if (r < 0) {
        fork_close(&f->under_way);
        return r;
    }
    struct hello hello = make_hello(f, channel);
    int fd = f->under_way;
    f->under_way = -1;
    fd = endpoint_greet(fd, &hello, err);
    return fd < 0 ? fail_about(fd, rank, err) : fd;
}
