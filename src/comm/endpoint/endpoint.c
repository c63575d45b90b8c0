/* Listening sockets, and connections to them. Layer: comm; see endpoint.h. */
#include "comm/endpoint/endpoint.h"

#include "comm/endpoint/address.h"
#include "comm/system/deadline.h"
#include "comm/system/membarrier.h"
#include "comm/system/sized.h"
#include "core/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { SLICE_MS = 50 }; /* how often a thread that waits asks whether it must stop */

static const char member_magic[8] = "muster2";
static const char group_prefix[] = "group:";

/* Abstract Unix sockets are visible within one network namespace of one running kernel. */
static int find_host(unsigned char *ret, struct muster_err *err)
{
    char boot[64] = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, boot, sizeof boot - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    struct stat net;
    if (n <= 0 || stat("/proc/self/ns/net", &net) < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot identify this host: /proc is needed");
    }
    uint64_t name[2] = {hash_bytes(HASH_START, boot, (size_t)n),
                        hash_bytes(HASH_START ^ net.st_ino, boot, (size_t)n)};
    memcpy(ret, name, sizeof name);
    return 0;
}

static uint64_t find_pid_space(void)
{
    struct stat pid;
    return stat("/proc/self/ns/pid", &pid) == 0 ? (uint64_t)pid.st_ino : 0;
}

bool endpoint_sees_process(const struct member *member)
{
    unsigned char host[sizeof member->host];
    uint64_t space = find_pid_space();
    return space != 0 && member->pid_space == space && find_host(host, NULL) == 0 &&
           memcmp(host, member->host, sizeof host) == 0;
}

/* Writes an abstract name, which leaves no file behind. */
static socklen_t unix_address(const unsigned char *incarnation, struct sockaddr_un *ret)
{
    static const char prefix[] = "muster-";
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path + 1, prefix, sizeof prefix);
    memcpy(ret->sun_path + 1 + sizeof prefix, incarnation, 16);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + sizeof prefix + 16);
}

static int listen_unix(struct muster_endpoint *e, struct muster_err *err)
{
    struct sockaddr_un address;
    socklen_t length = unix_address(e->self.incarnation, &address);
    e->unix_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (e->unix_fd < 0 || bind(e->unix_fd, (struct sockaddr *)&address, length) < 0 ||
        listen(e->unix_fd, SOMAXCONN) < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot open a Unix socket: %s", strerror(errno));
    }
    return 0;
}

/* Sets the address by which others reach us: the one that the socket is bound to. */
static void tell_address(struct muster_endpoint *e, const struct address *at)
{
    struct member *self = &e->self;
    self->port = address_port(at);
    if (at->any.sa_family == AF_INET6) {
        memcpy(self->address, &at->six.sin6_addr, sizeof self->address);
        self->scope = at->six.sin6_scope_id;
    } else {
        static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
        memcpy(self->address, mapped, sizeof mapped);
        memcpy(self->address + sizeof mapped, &at->four.sin_addr, sizeof at->four.sin_addr);
    }
}

static struct address address_of_member(const struct member *m)
{
    struct address a = {.six = {.sin6_family = AF_INET6, .sin6_port = m->port}};
    memcpy(&a.six.sin6_addr, m->address, sizeof m->address);
    a.six.sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&a.six.sin6_addr) ? m->scope : 0;
    if (IN6_IS_ADDR_V4MAPPED(&a.six.sin6_addr)) {
        a = (struct address){.four = {.sin_family = AF_INET, .sin_port = m->port}};
        memcpy(&a.four.sin_addr, m->address + 12, sizeof a.four.sin_addr);
    }
    return a;
}

/* Listens at the first of these addresses that belongs to this host. */
static int listen_tcp(struct muster_endpoint *e, const struct address *at, int num,
                      struct muster_err *err)
{
    struct address bound;
    socklen_t bytes = sizeof bound;
    for (int i = 0; i < num && e->tcp_fd < 0; i++) {
        e->tcp_fd = address_listen(&at[i]);
    }
    if (e->tcp_fd < 0 || getsockname(e->tcp_fd, &bound.any, &bytes) < 0) {
        char text[ADDRESS_TEXT_BYTES];
        return muster_fail(err, MUSTER_EOS, "cannot listen on %s: %s",
                           address_text(&at[num - 1], text), strerror(errno));
    }
    tell_address(e, &bound);
    return 0;
}

/* Ranks that name different groups count as ranks on different hosts. */
static void mix_group(unsigned char *host, size_t size_bytes, const char *group)
{
    for (size_t i = 0; group[i]; i++) {
        host[i % size_bytes] = (unsigned char)(host[i % size_bytes] * 31 + group[i]);
    }
}

static int name_self(struct muster_endpoint *e, const char *transport, struct muster_err *err)
{
    memcpy(e->self.magic, member_magic, sizeof member_magic);
    if (getrandom(e->self.incarnation, sizeof e->self.incarnation, 0) !=
        (ssize_t)sizeof e->self.incarnation) {
        return muster_fail(err, MUSTER_EOS, "no random numbers: %s", strerror(errno));
    }
    e->self.pid_space = find_pid_space();
    if (transport && strcmp(transport, "tcp") == 0) {
        memcpy(e->self.host, e->self.incarnation, sizeof e->self.host);
        return 0;
    }
    int r = find_host(e->self.host, err);
    if (r == 0 && transport && strncmp(transport, group_prefix, strlen(group_prefix)) == 0) {
        mix_group(e->self.host, sizeof e->self.host, transport + strlen(group_prefix));
    }
    return r;
}

static int open_sockets(struct muster_endpoint *e, const char *host, const char *towards,
                        struct muster_err *err)
{
    struct address addresses[ADDRESS_MAX];
    const char *reason = "";
    int num = 1;
    if (host && (num = address_resolve(host, 0, addresses, &reason)) == 0) {
        return muster_fail(err, MUSTER_ENOHOST, "there is no host %s: %s", host, reason);
    }
    if (!host && !address_towards(towards, &addresses[0])) {
        addresses[0] = address_of_machine();
    }
    int r = listen_unix(e, err);
    r = r < 0 ? r : listen_tcp(e, addresses, num, err);
    const int listening[] = {e->unix_fd, e->tcp_fd};
    return r < 0 ? r : arrivals_open(&e->arrivals, listening, 2, err);
}

/* Otherwise a child would answer for its parent, even when the parent is dead. */
static void close_sockets(void *context)
{
    struct muster_endpoint *e = context;
    arrivals_close(&e->arrivals);
    fork_close(&e->unix_fd);
    fork_close(&e->tcp_fd);
}

int endpoint_open(const char *host, const char *towards, const char *transport,
                  struct muster_endpoint **ret, struct muster_err *err)
{
    transport = transport ? transport : getenv("MUSTER_TRANSPORT");
    if (transport && strcmp(transport, "auto") != 0 && strcmp(transport, "tcp") != 0 &&
        strcmp(transport, "shm") != 0 &&
        strncmp(transport, group_prefix, strlen(group_prefix)) != 0) {
        return muster_fail(err, MUSTER_ECONFIG,
                           "unknown transport %s; use auto, shm, tcp or group:NAME", transport);
    }
    (void)membarrier_register(); /* now, and not when others wait for this process in order to
                                    form with it */
    struct muster_endpoint *e = calloc(1, sizeof *e);
    if (!e) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for an endpoint");
    }
    e->unix_fd = e->tcp_fd = e->arrivals.epoll_fd = -1;
    e->fork = (struct fork_watch){.forked = close_sockets, .context = e};
    fork_remember(&e->fork);
    int r = name_self(e, transport, err);
    r = r < 0 ? r : open_sockets(e, host, towards, err);
    if (r < 0) {
        muster_endpoint_close(e);
        return r;
    }
    *ret = e;
    return 0;
}

int muster_endpoint_open(const char *host, struct muster_endpoint **ret, struct muster_err *err)
{
    int r = sized_check_err(err);
    return r < 0 ? r : endpoint_open(host, NULL, NULL, ret, err);
}

void muster_endpoint_member(const struct muster_endpoint *endpoint, struct muster_member *ret)
{
    _Static_assert(sizeof(struct member) <= sizeof *ret, "a member fits");
    memset(ret, 0, sizeof *ret);
    memcpy(ret, &endpoint->self, sizeof endpoint->self);
}

void muster_endpoint_cancel(struct muster_endpoint *endpoint, uint64_t generation)
{
    uint64_t end = generation == UINT64_MAX ? generation : generation + 1;
    uint64_t now = atomic_load(&endpoint->cancelled);
    while (now < end && !atomic_compare_exchange_weak(&endpoint->cancelled, &now, end)) {
    }
}

struct member endpoint_member(const struct muster_member *bytes)
{
    struct member member;
    memcpy(&member, bytes, sizeof member);
    return member;
}

bool endpoint_member_ok(const struct muster_member *bytes)
{
    return memcmp(bytes, member_magic, sizeof member_magic) == 0;
}

void muster_endpoint_close(struct muster_endpoint *e)
{
    if (!e) {
        return;
    }
    fork_forget(&e->fork);
    close_sockets(e);
    free(e);
}

/* ---- connecting ---- */

int endpoint_begin(const struct member *m, bool local)
{
    if (local) {
        struct sockaddr_un near;
        socklen_t bytes = unix_address(m->incarnation, &near);
        return address_begin((struct sockaddr *)&near, bytes);
    }
    struct address far = address_of_member(m);
    return address_begin(&far.any, address_bytes(&far));
}

int endpoint_fail(bool local, struct muster_err *err)
{
    if (errno == EMFILE || errno == ENFILE) {
        return muster_fail(err, MUSTER_EOS, "too many open files: raise the limit (ulimit -n)");
    }
    return muster_fail(err, errno == ETIMEDOUT ? MUSTER_ETIMEDOUT : MUSTER_EUNAVAIL,
                       "cannot connect to a member%s: %s", local ? " on this host" : "",
                       strerror(errno));
}

int endpoint_greet(int fd, const struct hello *hello, struct muster_err *err)
{
    if (send(fd, hello, sizeof *hello, MSG_NOSIGNAL) != (ssize_t)sizeof *hello) {
        int r = muster_fail(err, MUSTER_EIO, "a member does not answer: %s", strerror(errno));
        close(fd);
        return r;
    }
    return fd;
}

/* Finishes to connect, in slices. Returns 0; or -1 and errno, which is ECANCELED if it must stop.
 */
static int finish(int fd, const struct endpoint_wait *wait)
{
    int64_t slice_ns;
    do {
        slice_ns = deadline_after_ms(SLICE_MS);
        slice_ns = slice_ns < wait->deadline_ns ? slice_ns : wait->deadline_ns;
        if (address_finish(fd, slice_ns) == 0) {
            return 0;
        }
        if (errno == ETIMEDOUT && wait->must_stop && wait->must_stop(wait->context)) {
            errno = ECANCELED;
        }
    } while (errno == ETIMEDOUT && slice_ns < wait->deadline_ns);
    return -1;
}

int endpoint_connect(const struct member *member, bool local, const struct hello *hello,
                     const struct endpoint_wait *wait, struct muster_err *err)
{
    int fd;
    while ((fd = endpoint_begin(member, local)) < 0 && errno == EAGAIN &&
           deadline_now_ns() < wait->deadline_ns) {
        (void)poll(NULL, 0, 1);
    }
    if (fd < 0) {
        return endpoint_fail(local, err);
    }
    if (finish(fd, wait) < 0) {
        int r = errno == ECANCELED
                    ? muster_fail(err, MUSTER_EINTERRUPTED, "connecting was interrupted")
                    : endpoint_fail(local, err);
        close(fd);
        return r;
    }
    return endpoint_greet(fd, hello, err);
}

/* ---- descriptors ---- */

int endpoint_pass(int to, int fd, struct muster_err *err)
{
    char byte = 0;
    struct iovec data = {&byte, 1};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (sendmsg(to, &message, MSG_NOSIGNAL) != 1) {
        return muster_fail(err, MUSTER_EUNAVAIL,
                           "cannot send the shared memory's descriptor to a member: %s",
                           strerror(errno));
    }
    return 0;
}

int endpoint_receive(int from, struct muster_err *err)
{
    char byte;
    struct iovec data = {&byte, 1};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t n = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return MUSTER_EAGAIN;
    }
    if (n > 0 && message.msg_flags & MSG_CTRUNC) {
        return muster_fail(err, MUSTER_EOS, "too many open files: raise the limit (ulimit -n)");
    }
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!c || c->cmsg_type != SCM_RIGHTS) {
        return muster_fail(
            err, MUSTER_EUNAVAIL,
            "a member on this host has given up, or forms another generation of the communicator");
    }
    int fd;
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}
