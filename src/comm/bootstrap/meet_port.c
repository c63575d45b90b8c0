/* The ranks meet at rank 0's port: each rank sends a greeting, and when all have come, rank 0
 * answers each with the list of members.
 *
 * Layer: comm. Memory: the caller's. Thread: the caller's.
 */
#include "comm/bootstrap/meet.h"
#include "comm/endpoint/address.h"
#include "comm/endpoint/arrivals.h"
#include "comm/system/deadline.h"
#include "core/hash.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MEET_SLICE_MS = 20, RETRY_MS = 20, CONNECT_MS = 1000, REST_MS = 2000 };

struct greeting {
    struct hello hello; /* its digest is a hash of the group's name and size */
    struct muster_member member;
};

static struct greeting greeting_of(const struct meeting *m)
{
    const struct muster_comm_options *o = m->options;
    uint64_t start = HASH_START ^ (uint64_t)o->size << 32;
    return (struct greeting){.hello = {.magic = HELLO_MAGIC,
                                       .index = (uint16_t)o->rank,
                                       .generation = o->generation,
                                       .digest = hash_bytes(start, m->name, strlen(m->name))},
                             .member = m->members[o->rank]};
}

/* Returns a negative code if the meeting must end: time is up, or the user interrupts it. */
static int late(const struct meeting *m, const char *what, struct muster_err *err)
{
    const struct muster_comm_options *o = m->options;
    if (o->interrupted && o->interrupted(o->interrupted_context)) {
        return muster_fail(err, MUSTER_EINTERRUPTED,
                           "interrupted while connecting to the other ranks");
    }
    if (deadline_now_ns() < m->deadline_ns) {
        return 0;
    }
    return muster_fail(err, MUSTER_ETIMEDOUT, "%s within %lld ms", what, (long long)o->timeout_ms);
}

/* Moves bytes until all are moved, the other side ends, or time is up. */
static int move_all(const struct meeting *m, int fd, void *data, size_t bytes, bool out,
                    struct muster_err *err)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = out ? send(fd, (char *)data + done, bytes - done, MSG_NOSIGNAL)
                        : recv(fd, (char *)data + done, bytes - done, 0);
        if (n > 0) {
            done += (size_t)n;
            continue;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return muster_fail(err, MUSTER_EAGAIN, "the connection ended");
        }
        struct pollfd p = {.fd = fd, .events = out ? POLLOUT : POLLIN};
        int r = poll(&p, 1, MEET_SLICE_MS) <= 0 ? late(m, "not all ranks have connected", err) : 0;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* Connects to any of the host's addresses. */
static int connect_once(const struct meeting *m, struct muster_err *err)
{
    struct address list[ADDRESS_MAX];
    const char *reason;
    int fd = -1;
    int num = address_resolve(m->options->host, htons((uint16_t)m->options->port), list, &reason);
    if (num == 0) {
        return muster_fail(err, MUSTER_EAGAIN, "%s: %s", m->options->host, reason);
    }
    for (int i = 0; i < num && fd < 0; i++) {
        int64_t most_ns = deadline_now_ns() + CONNECT_MS * INT64_C(1000000);
        fd = address_connect(&list[i], most_ns < m->deadline_ns ? most_ns : m->deadline_ns);
    }
    char text[ADDRESS_TEXT_BYTES];
    return fd >= 0 ? fd
                   : muster_fail(err, MUSTER_EAGAIN, "%s: %s", address_text(&list[num - 1], text),
                                 strerror(errno));
}

static int visit_once(struct meeting *m, struct muster_err *err)
{
    int fd = connect_once(m, err);
    if (fd < 0) {
        return fd;
    }
    struct greeting g = greeting_of(m);
    int r = move_all(m, fd, &g, sizeof g, true, err);
    r = r < 0 ? r
              : move_all(m, fd, m->members, (size_t)m->options->size * sizeof *m->members, false,
                         err);
    close(fd);
    return r;
}

/* Tries again while rank 0 does not answer: it may start later, or still be busy with the group
 * before. */
static int visit(struct meeting *m, struct muster_err *err)
{
    char what[MUSTER_ERR_TEXT_BYTES + 64];
    for (;;) {
        struct muster_err reason = MUSTER_ERR_INIT;
        struct muster_member self = m->members[m->options->rank];
        int r = visit_once(m, &reason);
        if (r == 0) {
            return 0;
        }
        m->members[m->options->rank] = self;
        if (r != MUSTER_EAGAIN) {
            return muster_fail(err, r, "%s", reason.text);
        }
        (void)snprintf(what, sizeof what, "rank 0 did not answer (%s)", reason.text);
        r = late(m, what, err);
        if (r < 0) {
            return r;
        }
        (void)poll(NULL, 0, RETRY_MS);
    }
}

/* Listens at all addresses of this machine. */
static int listen_at(const struct meeting *m, struct muster_err *err)
{
    uint16_t port = htons((uint16_t)m->options->port);
    struct address six = {.six = {.sin6_family = AF_INET6, .sin6_port = port}};
    struct address four = {.four = {.sin_family = AF_INET, .sin_port = port}};
    int fd = address_listen(&six);
    if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
        fd = address_listen(&four); /* a kernel without IPv6 */
    }
    return fd >= 0
               ? fd
               : muster_fail(err, MUSTER_EUNAVAIL,
                             "rank 0 cannot listen on port %d: %s (set MASTER_PORT to a free one)",
                             m->options->port, strerror(errno));
}

/* Takes the member that follows a hello; both were sent together. */
static void receive(struct meeting *m, int fd, int rank, int *visitors)
{
    struct muster_member member;
    struct meeting brief = *m;
    brief.deadline_ns = deadline_after_ms(REST_MS);
    if (rank <= 0 || rank >= m->options->size ||
        move_all(&brief, fd, &member, sizeof member, false, NULL) < 0) {
        close(fd);
        return;
    }
    if (visitors[rank] >= 0) {
        close(visitors[rank]); /* the rank came again: the newer process is alive */
    }
    visitors[rank] = fd;
    m->members[rank] = member;
}

/* Whether a visitor has left; a visitor that waits sends nothing more. */
static bool has_left(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

static int count_visitors(const int *visitors, int size)
{
    int came = 0;
    for (int r = 1; r < size; r++) {
        came += visitors[r] >= 0;
    }
    return came;
}

/* Drops ranks that died while they waited here, because such a member would never come; another
 * incarnation of the rank may come. */
static bool lose_some(int *visitors, int size)
{
    bool lost = false;
    for (int r = 1; r < size; r++) {
        if (visitors[r] >= 0 && has_left(visitors[r])) {
            close(visitors[r]);
            visitors[r] = -1;
            lost = true;
        }
    }
    return lost;
}

static int host_visitors(struct meeting *m, struct arrivals *arrivals, int *visitors,
                         struct muster_err *err)
{
    const struct hello ours = greeting_of(m).hello;
    int size = m->options->size, r = 0;
    while (r == 0 && (count_visitors(visitors, size) < size - 1 || lose_some(visitors, size))) {
        struct hello hello;
        int fd = arrivals_next(arrivals, ours.generation, ours.digest, MEET_SLICE_MS, &hello, err);
        if (fd >= 0) {
            receive(m, fd, hello.index, visitors);
        }
        char what[80];
        (void)snprintf(what, sizeof what, "only %d of %d ranks came",
                       1 + count_visitors(visitors, size), size);
        r = fd < 0 && fd != MUSTER_EAGAIN ? fd : late(m, what, err);
    }
    for (int peer = 1; r == 0 && peer < size; peer++) {
        r = move_all(m, visitors[peer], m->members, (size_t)size * sizeof *m->members, true, err);
        r = r == MUSTER_EAGAIN ? muster_fail(err, MUSTER_EUNAVAIL,
                                             "rank %d disconnected while the ranks connected", peer)
                               : r;
    }
    return r;
}

/* Strangers, and ranks of other groups, wait among the arrivals until the meeting is over. */
static int host(struct meeting *m, struct muster_err *err)
{
    int listener = listen_at(m, err);
    if (listener < 0) {
        return listener;
    }
    struct arrivals arrivals;
    int visitors[MUSTER_MAX_RANKS];
    for (int rank = 0; rank < MUSTER_MAX_RANKS; rank++) {
        visitors[rank] = -1;
    }
    int r = arrivals_open(&arrivals, &listener, 1, err);
    r = r < 0 ? r : host_visitors(m, &arrivals, visitors, err);
    for (int rank = 1; rank < m->options->size; rank++) {
        if (visitors[rank] >= 0) {
            close(visitors[rank]);
        }
    }
    arrivals_close(&arrivals);
    close(listener);
    return r;
}

int meet_at_port(struct meeting *m, struct muster_err *err)
{
    return m->options->rank == 0 ? host(m, err) : visit(m, err);
}
