/* See listener.h. */
#include "coordinator/server/listener.h"

#include "base/file.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    HOST_BYTES = 256,
    DONE_BYTES = sizeof(struct sockaddr_un) + sizeof WIRE_DONE_SUFFIX,
    TURN = 64, /* connections that are accepted before other handlers run */
};

static int fail_to_listen(struct muster_err *err, const char *address)
{
    int reason = errno;
    if (reason == EADDRINUSE) {
        return muster_fail(err, MUSTER_ECONFLICT,
                           "cannot listen at %s: another process does; stop it, or choose another "
                           "address (port 0 is a free one)",
                           address);
    }
    int code = reason == EACCES || reason == EPERM ? MUSTER_EPERM : MUSTER_EOS;
    return muster_fail(err, code, "cannot listen at %s: %s", address, strerror(reason));
}

/* ---- Unix ---- */

static bool is_no_socket(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0 && !S_ISSOCK(found.st_mode);
}

/* Connects to the socket and hangs up. Returns 0 or the errno; EAGAIN: too many clients wait. */
static int try_to_connect(const struct sockaddr_un *where)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool good = fd >= 0 && connect(fd, (const struct sockaddr *)where, sizeof *where) == 0;
    int failed = good ? 0 : errno;
    if (fd >= 0) {
        close(fd);
    }
    return failed;
}

/* Whether the socket was left behind by a coordinator that was killed, so that the next one cannot
 * bind it. */
static bool is_stale(const struct sockaddr_un *where)
{
    return !is_no_socket(where->sun_path) && try_to_connect(where) == ECONNREFUSED;
}

static int bind_unix(int fd, const struct sockaddr_un *where)
{
    mode_t before = umask(0177); /* only the owner may connect */
    int r = bind(fd, (const struct sockaddr *)where, sizeof *where);
    if (r < 0 && errno == EADDRINUSE) {
        bool stale = is_stale(where);
        errno = EADDRINUSE; /* of bind, for the caller */
        r = stale && unlink(where->sun_path) == 0
                ? bind(fd, (const struct sockaddr *)where, sizeof *where)
                : -1;
    }
    umask(before);
    return r;
}

static void done_path(const char *path, char ret[DONE_BYTES])
{
    (void)snprintf(ret, DONE_BYTES, "%s" WIRE_DONE_SUFFIX, path);
}

static void remove_done(const char *path)
{
    char done[DONE_BYTES];
    done_path(path, done);
    (void)unlink(done);
}

bool server_listener_is_used(const char *address)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    const char *path = address + strlen("unix:");
    if (strncmp(address, "unix:", 5) != 0 || strlen(path) >= sizeof where.sun_path) {
        return false;
    }
    memcpy(where.sun_path, path, strlen(path));
    int failed = try_to_connect(&where);
    return failed == 0 || failed == EAGAIN;
}

void server_listener_note_end(const char *address, const char *failure)
{
    char done[DONE_BYTES];
    if (strncmp(address, "unix:", 5) == 0) {
        done_path(address + 5, done);
        /* if this fails, late workers wait until their time limit */
        (void)file_put(done, failure, strlen(failure), 0600, NULL);
    }
}

static int open_unix(struct server_listener *listener, const char *path, struct muster_err *err)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof where.sun_path) {
        return muster_fail(err, MUSTER_EINVAL, "%s: the path of a Unix socket has 1 to %zu bytes",
                           listener->address, sizeof where.sun_path - 1);
    }
    memcpy(where.sun_path, path, strlen(path));
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0 || bind_unix(listener->fd, &where) < 0) {
        if (errno == EADDRINUSE && is_no_socket(path)) {
            return muster_fail(
                err, MUSTER_EEXIST,
                "cannot listen at %s: the file there is not a socket; choose another path",
                listener->address);
        }
        return fail_to_listen(err, listener->address);
    }
    listener->is_unix = true;
    remove_done(path);
    return listen(listener->fd, BACKLOG) < 0 ? fail_to_listen(err, listener->address) : 0;
}

/* ---- TCP ---- */

static int bind_tcp(const struct addrinfo *where)
{
    int on = 1;
    int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, where->ai_addr, where->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        int reason = errno;
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

static unsigned port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } bound = {0};
    socklen_t size = sizeof bound;
    (void)getsockname(fd, &bound.any, &size);
    return ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
}

/* Splits host and port. In "[::1]:0" the host has brackets. */
static bool split(const char *address, char host[HOST_BYTES], const char **ret_port)
{
    const char *colon = strrchr(address, ':');
    size_t count = colon ? (size_t)(colon - address) : 0;
    bool brackets = count >= 2 && address[0] == '[' && address[count - 1] == ']';
    size_t skip = brackets ? 1 : 0;
    if (!colon || count - 2 * skip >= HOST_BYTES || !colon[1] ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5 ||
        strtoul(colon + 1, NULL, 10) > UINT16_MAX) {
        return false;
    }
    memcpy(host, address + skip, count - 2 * skip);
    host[count - 2 * skip] = 0;
    *ret_port = colon + 1;
    return true;
}

static int open_tcp(struct server_listener *listener, const char *address, struct muster_err *err)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[HOST_BYTES];
    const char *port;
    if (!split(address, host, &port)) {
        return muster_fail(err, MUSTER_EINVAL, "%s is no tcp:HOST:PORT", listener->address);
    }
    int r = getaddrinfo(*host ? host : NULL, port, &hints, &found);
    if (r != 0) {
        return muster_fail(err, r == EAI_SERVICE ? MUSTER_EINVAL : MUSTER_ENOHOST,
                           "cannot listen at %s: %s", listener->address, gai_strerror(r));
    }
    for (const struct addrinfo *each = found; each && listener->fd < 0; each = each->ai_next) {
        listener->fd = bind_tcp(each);
    }
    r = listener->fd < 0 ? fail_to_listen(err, listener->address) : 0;
    freeaddrinfo(found);
    if (r == 0) {
        bool is_v6 = strchr(host, ':') != NULL;
        (void)snprintf(listener->address, sizeof listener->address,
                       is_v6 ? "tcp:[%s]:%u" : "tcp:%s:%u", host, port_of(listener->fd));
    }
    return r;
}

int server_listener_open(struct server_listener *listener, const char *address,
                         struct muster_err *err)
{
    *listener = (struct server_listener){.fd = -1, .spare = -1};
    if (strlen(address) >= sizeof listener->address) {
        return muster_fail(err, MUSTER_EINVAL, "an address to listen at is too long");
    }
    (void)snprintf(listener->address, sizeof listener->address, "%s", address);
    if (strncmp(address, "unix:", 5) == 0) {
        return open_unix(listener, address + 5, err);
    }
    if (strncmp(address, "tcp:", 4) == 0) {
        return open_tcp(listener, address + 4, err);
    }
    return muster_fail(err, MUSTER_EINVAL, "%s is no address: unix:PATH or tcp:HOST:PORT", address);
}

/* ---- Accepting ---- */

/* Accepts a connection with the spare descriptor, and closes it at once. If no descriptor is left,
 * a client in the backlog would otherwise wait for ever, and the loop would spin. */
static bool turn_away(struct server_listener *listener)
{
    if (listener->spare < 0) {
        return false;
    }
    close(listener->spare);
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        close(fd);
    }
    listener->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

static void tune(const struct server_listener *listener, int fd)
{
    int on = 1, idle_s = 5, unsent_ms = 30000;
    if (!listener->is_unix) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof idle_s);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unsent_ms, sizeof unsent_ms);
    }
}

static void on_waiting(uv_poll_t *poll, int status, int events)
{
    struct server_listener *listener = poll->data;
    (void)events;
    for (int i = 0; status == 0 && i < TURN && listener->polled; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            tune(listener, fd);
            listener->accepted(listener->data, fd);
        } else if ((errno != EMFILE && errno != ENFILE) || !turn_away(listener)) {
            return;
        }
    }
}

void server_listener_serve(struct server_listener *listener, uv_loop_t *loop,
                           server_accepted *accepted, void *data)
{
    listener->accepted = accepted;
    listener->data = data;
    if (!listener->poll.data && uv_poll_init(loop, &listener->poll, listener->fd) == 0) {
        listener->poll.data = listener;
        listener->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    listener->polled =
        listener->poll.data && uv_poll_start(&listener->poll, UV_READABLE, on_waiting) == 0;
}

void server_listener_pause(struct server_listener *listener)
{
    if (listener->polled) {
        uv_poll_stop(&listener->poll);
        listener->polled = false;
    }
}

void server_listener_close(struct server_listener *listener)
{
    server_listener_pause(listener);
    if (listener->poll.data) {
        uv_close((uv_handle_t *)&listener->poll, NULL);
    }
    if (listener->is_unix) {
        (void)unlink(listener->address + strlen("unix:"));
    }
    if (listener->spare >= 0) {
        close(listener->spare);
    }
    if (listener->fd >= 0) {
        close(listener->fd);
    }
    listener->fd = listener->spare = -1;
}
