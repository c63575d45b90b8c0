/* How ranks that know only their number find each other: through a store, or at rank 0's port. What
 * they exchange is the list of members; form.c does the rest.
 *
 * At the port: each rank sends a greeting; when all have come, rank 0 answers each with the list.
 *
 * Layer: comm. Memory: the caller's. Thread: the caller's.
 */
#include "comm/internal.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/endpoint.h"

enum { MEET_MAGIC = 0x6d757337, MEET_SLICE_MS = 20, RETRY_MS = 20 };

struct greeting {
    uint32_t magic;
    int32_t rank;
    int32_t size;
    uint32_t zero;
    uint64_t generation;
    uint64_t name; /* hash of the group's name */
    struct muster_member member;
};

struct meeting {
    const struct muster_comm_options *options;
    const char *name;
    int64_t deadline_ns;
    struct muster_member *members; /* of all ranks, filled in */
};

static int late(const struct meeting *m, const char *what, struct muster_err *err)
{
    const struct muster_comm_options *o = m->options;
    if (o->interrupted && o->interrupted(o->interrupted_context)) {
        return muster_fail(err, MUSTER_EINTERRUPTED, "interrupted while meeting the other ranks");
    }
    if (wait_now_ns() < m->deadline_ns) {
        return 0;
    }
    return muster_fail(err, MUSTER_ETIMEDOUT, "%s within %lld ms", what, (long long)o->timeout_ms);
}

/* ---- through a store ---- */

static int meet_in_store(struct meeting *m, struct muster_err *err)
{
    const struct muster_comm_options *o = m->options;
    const struct muster_store *store = o->store;
    for (int turn = 0; turn < o->size; turn++) {
        char key[160];
        int r = (o->rank + turn) % o->size; /* our own first */
        (void)snprintf(key, sizeof key, "muster/%.64s/%llu/%d", m->name,
                       (unsigned long long)o->generation, r);
        size_t bytes = 0;
        int rc = turn == 0 ? store->set(store->context, key, &m->members[r], sizeof m->members[r])
                           : store->get(store->context, key, &m->members[r], sizeof m->members[r],
                                        &bytes, (m->deadline_ns - wait_now_ns()) / 1000000);
        if (rc < 0) {
            return muster_fail(err, rc, "the store has nothing from rank %d: %s", r,
                               muster_code_text(rc));
        }
        if (turn > 0 && bytes != sizeof m->members[r]) {
            return muster_fail(err, MUSTER_EPROTO, "the store has %zu bytes under %s", bytes, key);
        }
    }
    return 0;
}

/* ---- at rank 0's port ---- */

static struct greeting greeting_of(const struct meeting *m)
{
    struct greeting g = {.magic = MEET_MAGIC,
                         .rank = m->options->rank,
                         .size = m->options->size,
                         .generation = m->options->generation,
                         .name = 0xcbf29ce484222325u,
                         .member = m->members[m->options->rank]};
    for (const char *c = m->name; *c; c++) {
        g.name = (g.name ^ (unsigned char)*c) * 0x100000001b3u;
    }
    return g;
}

/* Moves bytes until all are through, the other side ends, or time is up. */
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
        int rc = poll(&p, 1, MEET_SLICE_MS) == 0 ? late(m, "not all ranks came", err) : 0;
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int connect_once(const struct meeting *m, struct muster_err *err)
{
    char port[16];
    (void)snprintf(port, sizeof port, "%d", m->options->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    int rc = getaddrinfo(m->options->host, port, &hints, &list);
    if (rc != 0) {
        return muster_fail(err, MUSTER_EAGAIN, "%s: %s", m->options->host, gai_strerror(rc));
    }
    int fd = -1;
    for (struct addrinfo *i = list; i && fd < 0; i = i->ai_next) {
        fd = socket(i->ai_family, i->ai_socktype | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, i->ai_addr, i->ai_addrlen) < 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd >= 0 ? fd
                   : muster_fail(err, MUSTER_EAGAIN, "%s:%s: %s", m->options->host, port,
                                 strerror(errno));
}

static int visit_once(struct meeting *m, struct muster_err *err)
{
    int fd = connect_once(m, err);
    if (fd < 0) {
        return fd;
    }
    struct greeting g = greeting_of(m);
    struct timeval slice = {0, MEET_SLICE_MS * 1000};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
    int rc = move_all(m, fd, &g, sizeof g, true, err);
    rc = rc < 0 ? rc
                : move_all(m, fd, m->members, (size_t)m->options->size * sizeof *m->members, false,
                           err);
    close(fd);
    return rc;
}

/* Rank 0 may start later than we do, or still be busy with the group before. */
static int visit(struct meeting *m, struct muster_err *err)
{
    char what[MUSTER_ERR_TEXT_BYTES + 64];
    for (;;) {
        struct muster_err reason = {0};
        struct muster_member self = m->members[m->options->rank];
        int rc = visit_once(m, &reason);
        if (rc == 0) {
            return 0;
        }
        m->members[m->options->rank] = self;
        if (rc != MUSTER_EAGAIN) {
            return muster_fail(err, rc, "%s", reason.text);
        }
        (void)snprintf(what, sizeof what, "rank 0 did not answer (%s)", reason.text);
        rc = late(m, what, err);
        if (rc < 0) {
            return rc;
        }
        (void)poll(NULL, 0, RETRY_MS);
    }
}

static int listen_at(const struct meeting *m, struct muster_err *err)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)m->options->port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = six.sin6_port};
    bool is_six = fd >= 0;
    int on = 1, off = 0;
    if (!is_six) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    } else {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 ||
        bind(fd, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four,
             is_six ? sizeof six : sizeof four) < 0 ||
        listen(fd, SOMAXCONN) < 0) {
        int code =
            muster_fail(err, MUSTER_EUNAVAIL,
                        "rank 0 cannot listen on port %d: %s (set MASTER_PORT to a free one)",
                        m->options->port, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return code;
    }
    return fd;
}

/* Takes one greeting; strangers are hung up on. */
static void receive(struct meeting *m, int fd, int *visitors)
{
    struct greeting g, ours = greeting_of(m);
    struct meeting brief = *m;
    brief.deadline_ns = wait_now_ns() + INT64_C(2000000000);
    if (move_all(&brief, fd, &g, sizeof g, false, NULL) < 0 || g.magic != MEET_MAGIC ||
        g.name != ours.name || g.generation != ours.generation || g.size != ours.size ||
        g.rank <= 0 || g.rank >= g.size) {
        close(fd);
        return;
    }
    if (visitors[g.rank] >= 0) {
        close(visitors[g.rank]); /* it came again: the newer one is alive */
    }
    visitors[g.rank] = fd;
    m->members[g.rank] = g.member;
}

static int count_visitors(const int *visitors, int size)
{
    int came = 0;
    for (int r = 1; r < size; r++) {
        came += visitors[r] >= 0;
    }
    return came;
}

static int host_visitors(struct meeting *m, int listener, int *visitors, struct muster_err *err)
{
    int size = m->options->size, rc = 0;
    while (rc == 0 && count_visitors(visitors, size) < size - 1) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        if (poll(&p, 1, MEET_SLICE_MS) > 0) {
            int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (fd >= 0) {
                receive(m, fd, visitors);
            }
        }
        char what[80];
        (void)snprintf(what, sizeof what, "only %d of %d ranks came",
                       1 + count_visitors(visitors, size), size);
        rc = late(m, what, err);
    }
    for (int r = 1; rc == 0 && r < size; r++) {
        rc = move_all(m, visitors[r], m->members, (size_t)size * sizeof *m->members, true, err);
    }
    return rc;
}

static int host(struct meeting *m, struct muster_err *err)
{
    int listener = listen_at(m, err);
    if (listener < 0) {
        return listener;
    }
    int visitors[COMM_MAX_RANKS];
    for (int r = 0; r < COMM_MAX_RANKS; r++) {
        visitors[r] = -1;
    }
    int rc = host_visitors(m, listener, visitors, err);
    for (int r = 1; r < m->options->size; r++) {
        if (visitors[r] >= 0) {
            close(visitors[r]);
        }
    }
    close(listener);
    return rc;
}

/* ---- public ---- */

static int check_options(const struct muster_comm_options *o, struct muster_err *err)
{
    if (o->struct_size != sizeof *o) {
        return muster_fail(err, MUSTER_EINVAL, "start from muster_comm_options_default");
    }
    if (o->size < 1 || o->size > COMM_MAX_RANKS || o->rank < 0 || o->rank >= o->size) {
        return muster_fail(err, MUSTER_EINVAL, "rank %d of %d: a world has 1 to %d ranks", o->rank,
                           o->size, COMM_MAX_RANKS);
    }
    if (o->size > 1 && !o->store && (!o->host || o->port < 1 || o->port > 65535)) {
        return muster_fail(err, MUSTER_EINVAL, "ranks meet at a host and port, or in a store");
    }
    return 0;
}

int muster_comm_create(const struct muster_comm_options *options, struct muster_comm **ret,
                       struct muster_err *err)
{
    int rc = check_options(options, err);
    if (rc < 0) {
        return rc;
    }
    struct muster_endpoint *endpoint;
    rc = endpoint_open(NULL, options->host, options->transport, &endpoint, err);
    if (rc < 0) {
        return rc;
    }
    struct meeting m = {.options = options,
                        .name = options->name ? options->name : "world",
                        .deadline_ns = wait_now_ns() + options->timeout_ms * 1000000,
                        .members = calloc((size_t)options->size, sizeof *m.members)};
    if (!m.members) {
        muster_endpoint_close(endpoint);
        return muster_fail(err, MUSTER_ENOMEM, "no memory for %d members", options->size);
    }
    muster_endpoint_member(endpoint, &m.members[options->rank]);
    if (options->size > 1) {
        rc = options->store       ? meet_in_store(&m, err)
             : options->rank == 0 ? host(&m, err)
                                  : visit(&m, err);
    }
    if (rc == 0) {
        rc = form_comm(endpoint, m.members, options->size, options->rank, options->generation,
                       m.deadline_ns, options, ret, err);
    }
    free(m.members);
    muster_endpoint_close(endpoint);
    return rc;
}

/* The first of these variables that is set. */
static const char *first_of(const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value) {
            return value;
        }
    }
    return NULL;
}

static int read_number(const char *const *names, int fallback, int *ret, struct muster_err *err)
{
    const char *text = first_of(names);
    char *end;
    long value = text ? strtol(text, &end, 10) : fallback;
    if (text && (*end || value < 0 || value > 65535)) {
        return muster_fail(err, MUSTER_ECONFIG, "%s is %s, which is no rank, size or port",
                           names[0], text);
    }
    *ret = (int)value;
    return 0;
}

int muster_comm_from_env(struct muster_comm **ret, struct muster_err *err)
{
    static const char *const rank[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", NULL};
    static const char *const size[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    static const char *const port[] = {"MASTER_PORT", NULL};
    static const char *const address[] = {"MASTER_ADDR", NULL};
    struct muster_comm_options o;
    muster_comm_options_default(&o);
    int rc = read_number(rank, 0, &o.rank, err);
    rc = rc < 0 ? rc : read_number(size, 1, &o.size, err);
    rc = rc < 0 ? rc : read_number(port, 29500, &o.port, err);
    o.host = first_of(address) ? first_of(address) : "127.0.0.1";
    return rc < 0 ? rc : muster_comm_create(&o, ret, err);
}

struct split {
    int32_t color;
    int32_t key;
    int32_t rank;
    int32_t zero;
    struct muster_member member;
};

static int by_key(const void *left, const void *right)
{
    const struct split *a = left, *b = right;
    return a->key != b->key    ? (a->key < b->key ? -1 : 1)
           : a->rank < b->rank ? -1
                               : a->rank > b->rank;
}

/* Those of our colour, in order; their number, and which of them we are. */
static int choose_members(struct split *all, const struct muster_comm *comm, int color,
                          struct muster_member *members, int *ret_index)
{
    int num = 0;
    qsort(all, (size_t)comm->size, sizeof *all, by_key);
    for (int i = 0; i < comm->size; i++) {
        if (all[i].color == color) {
            *ret_index = all[i].rank == comm->rank ? num : *ret_index;
            members[num++] = all[i].member;
        }
    }
    return num;
}

int muster_comm_split(struct muster_comm *comm, int color, int key, struct muster_comm **ret,
                      struct muster_err *err)
{
    struct muster_comm_options o;
    muster_comm_options_default(&o);
    o.timeout_ms = atomic_load(&comm->timeout_ms);
    o.silence_ms = comm->silence_ms;
    o.interrupted = comm->interrupted;
    o.interrupted_context = comm->interrupted_context;
    struct muster_endpoint *endpoint;
    int rc = endpoint_open(NULL, NULL, NULL, &endpoint, err);
    if (rc < 0) {
        failure_close(comm, rc); /* the others must not wait for us */
        return rc;
    }
    struct split ours = {.color = color, .key = key, .rank = comm->rank};
    muster_endpoint_member(endpoint, &ours.member);
    struct split *all = calloc((size_t)comm->size, sizeof *all);
    struct muster_member *members = calloc((size_t)comm->size, sizeof *members);
    rc = all && members ? muster_all_gather(comm, &ours, all, sizeof ours, MUSTER_U8, err)
                        : muster_fail(err, MUSTER_ENOMEM, "no memory for %d members", comm->size);
    if (rc == 0 && color < 0) {
        *ret = NULL;
    } else if (rc == 0) {
        int index = 0;
        int num = choose_members(all, comm, color, members, &index);
        rc = form_comm(endpoint, members, num, index, comm->generation,
                       wait_now_ns() + o.timeout_ms * 1000000, &o, ret, err);
    }
    free(all);
    free(members);
    muster_endpoint_close(endpoint);
    return rc;
}
