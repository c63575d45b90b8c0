/* See connection.h. */
#include "client/socket/connection.h"

#include "comm/endpoint/address.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 << 10,
    UNACKNOWLEDGED_MS = 10000, /* a machine that is silent for this time has gone */
    HOST_BYTES = 256,
};

/* ---- Bytes ---- */

static int reserve(struct connection_bytes *bytes, size_t more, size_t most, struct muster_err *err)
{
    size_t need = bytes->used + more, room = bytes->room ? bytes->room : 4096;
    if (need > most) {
        return muster_fail(err, MUSTER_ETOOBIG, "more than %zu MiB for the coordinator are queued",
                           most >> 20);
    }
    while (room < need) {
        room *= 2;
    }
    uint8_t *data = room == bytes->room ? bytes->data : realloc(bytes->data, room);
    if (!data) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for messages of %zu bytes", room);
    }
    bytes->data = data;
    bytes->room = room;
    return 0;
}

static void release(struct connection_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct connection_bytes){0};
}

/* ---- Opening ---- */

static void close_in_child(void *context)
{
    struct connection *c = context;
    fork_close(&c->fd);
}

void connection_init(struct connection *c)
{
    *c = (struct connection){.fd = -1};
    c->fork = (struct fork_watch){.forked = close_in_child, .context = c};
    fork_remember(&c->fork);
}

void connection_done(struct connection *c)
{
    connection_close(c);
    fork_forget(&c->fork);
    release(&c->in);
    release(&c->out);
    release(&c->room);
}

void connection_close(struct connection *c)
{
    fork_close(&c->fd);
    c->connecting = false;
    c->in.used = c->taken = 0;
    c->out.used = c->sent = 0;
}

static bool split_tcp(const char *address, char host[HOST_BYTES], const char **ret_port)
{
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || colon - address >= HOST_BYTES) {
        return false;
    }
    bool quoted = address[0] == '[' && colon[-1] == ']';
    size_t count = (size_t)(colon - address) - (quoted ? 2 : 0);
    memcpy(host, address + quoted, count);
    host[count] = 0;
    *ret_port = colon + 1;
    char *end;
    unsigned long port = strtoul(*ret_port, &end, 10);
    return count > 0 && **ret_port >= '0' && **ret_port <= '9' && !*end && port > 0 &&
           port <= 65535;
}

const char *connection_check_address(const char *address)
{
    char host[HOST_BYTES];
    const char *port;
    struct sockaddr_un un;
    if (strncmp(address, "unix:", 5) == 0) {
        size_t count = strlen(address + 5);
        return count == 0                   ? "unix: needs the path of a socket"
               : count < sizeof un.sun_path ? NULL
                                            : "the path of a socket has at most 107 bytes";
    }
    if (strncmp(address, "tcp:", 4) == 0) {
        return split_tcp(address + 4, host, &port) ? NULL : "tcp: needs HOST:PORT";
    }
    return "it begins with unix: or tcp:";
}

static int begin(struct connection *c, int family, const struct sockaddr *to, socklen_t bytes)
{
    int on = 1, patience = UNACKNOWLEDGED_MS;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    c->fd = fd;
    if (family != AF_UNIX) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
    }
    if (connect(fd, to, bytes) == 0) {
        return 0;
    }
    c->connecting = errno == EINPROGRESS;
    if (!c->connecting) {
        int code = errno;
        fork_close(&c->fd);
        errno = code;
    }
    return c->connecting ? 0 : -1;
}

static int begin_unix(struct connection *c, const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    memcpy(un.sun_path, path, strlen(path));
    return begin(c, AF_UNIX, (const struct sockaddr *)&un, sizeof un);
}

static int begin_tcp(struct connection *c, const char *address, struct muster_err *err)
{
    char host[HOST_BYTES];
    const char *port;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    (void)split_tcp(address, host, &port);
    int r = getaddrinfo(host, port, &hints, &found);
    if (r != 0) {
        return muster_fail(err, MUSTER_ENOHOST, "the coordinator's host %s: %s", host,
                           gai_strerror(r));
    }
    unsigned count = 0;
    for (const struct addrinfo *a = found; a; a = a->ai_next) {
        count++;
    }
    const struct addrinfo *one = found;
    for (unsigned skip = c->turn++ % count; skip > 0; skip--) {
        one = one->ai_next;
    }
    r = begin(c, one->ai_family, one->ai_addr, one->ai_addrlen);
    int code = errno;
    freeaddrinfo(found);
    errno = code;
    return r;
}

static int fail_unavailable(int code, struct muster_err *err)
{
    return muster_fail(err, MUSTER_EUNAVAIL, "no connection to the coordinator: %s",
                       code == 0 ? "it has closed it" : strerror(code));
}

/* Reads the file that the coordinator has written at its end: WIRE_DONE_SUFFIX. */
static int check_end(const char *address, struct muster_err *err)
{
    char done[sizeof(struct sockaddr_un) + sizeof WIRE_DONE_SUFFIX], failure[MUSTER_ERR_TEXT_BYTES];
    (void)snprintf(done, sizeof done, "%s" WIRE_DONE_SUFFIX, address + strlen("unix:"));
    bool is_unix = strncmp(address, "unix:", strlen("unix:")) == 0;
    int fd = is_unix ? open(done, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd < 0) {
        return 0;
    }
    ssize_t count = read(fd, failure, sizeof failure);
    close(fd);
    if (count < 0) {
        return 0;
    }
    return count > 0
               ? muster_fail(err, MUSTER_EFAILED, "%.*s", (int)count, failure)
               : muster_fail(err, MUSTER_EGONE, "the job is done, and its coordinator has ended");
}

int connection_open(struct connection *c, const char *address, struct muster_err *err)
{
    connection_close(c);
    int r = check_end(address, err);
    if (r < 0) {
        return r;
    }
    r = strncmp(address, "unix:", 5) == 0 ? begin_unix(c, address + 5)
                                          : begin_tcp(c, address + 4, err);
    return r < -1 ? r : r < 0 ? fail_unavailable(errno, err) : 0;
}

/* ---- Moving bytes ---- */

short connection_events(const struct connection *c)
{
    bool writes = c->connecting || c->sent < c->out.used;
    return (short)(POLLIN | (writes ? POLLOUT : 0));
}

static bool would_block(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Returns 0, or the errno that ended the connection. */
static int flush(struct connection *c)
{
    while (!c->connecting && c->fd >= 0 && c->sent < c->out.used) {
        ssize_t n = send(c->fd, c->out.data + c->sent, c->out.used - c->sent, MSG_NOSIGNAL);
        if (n < 0) {
            return would_block() ? 0 : errno;
        }
        c->sent += (size_t)n;
    }
    if (c->sent == c->out.used) {
        c->sent = c->out.used = 0;
    }
    return 0;
}

int connection_send(struct connection *c, const struct wire_message *message,
                    struct muster_err *err)
{
    int64_t count = wire_write(message, NULL, 0, err);
    int r = count < 0 ? (int)count : reserve(&c->out, (size_t)count, CONNECTION_QUEUE_MAX, err);
    if (r < 0) {
        return r;
    }
    (void)wire_write(message, c->out.data + c->out.used, (size_t)count, err);
    c->out.used += (size_t)count;
    (void)flush(c);
    return 0;
}

static int finish_connecting(struct connection *c, struct muster_err *err)
{
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    int code = 0;
    socklen_t bytes = sizeof code;
    if (!c->connecting || poll(&p, 1, 0) <= 0) {
        return 0;
    }
    (void)getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &code, &bytes);
    c->connecting = false;
    code = code == 0 && address_is_self(c->fd) ? ECONNREFUSED : code;
    return code == 0 ? 0 : fail_unavailable(code, err);
}

/* Removes the frames that were taken, and moves the rest to the front. */
static void make_room(struct connection *c)
{
    memmove(c->in.data, c->in.data + c->taken, c->in.used - c->taken);
    c->in.used -= c->taken;
    c->taken = 0;
}

static int receive(struct connection *c, struct muster_err *err)
{
    for (;;) {
        if (c->taken > 0) {
            make_room(c);
        }
        int r = reserve(&c->in, READ_BYTES, WIRE_FRAME_MAX + 2 * READ_BYTES, err);
        if (r < 0) {
            return r == MUSTER_ETOOBIG ? 0 : r; /* whole frames are taken first */
        }
        ssize_t n = recv(c->fd, c->in.data + c->in.used, READ_BYTES, 0);
        if (n <= 0) {
            bool ended = n == 0 || !would_block();
            return ended ? fail_unavailable(n == 0 ? 0 : errno, err) : 0;
        }
        c->in.used += (size_t)n;
    }
}

int connection_move(struct connection *c, struct muster_err *err)
{
    int r = finish_connecting(c, err);
    if (r < 0 || c->connecting) {
        return r;
    }
    int code = flush(c);
    r = receive(c, err); /* messages that came before the end are still read */
    return r == 0 && code != 0 ? fail_unavailable(code, err) : r;
}

int connection_next(struct connection *c, struct wire_message *ret, struct muster_err *err)
{
    const uint8_t *frame = c->in.data + c->taken;
    int64_t count = wire_frame_bytes(frame, c->in.used - c->taken, WIRE_FRAME_MAX, err);
    if (count <= 0 || (size_t)count > c->in.used - c->taken) {
        return count < 0 ? (int)count : 0;
    }
    c->room.used = 0;
    int r = reserve(&c->room, WIRE_ROOM_BYTES(count), 2 * (size_t)WIRE_FRAME_MAX + 1, err);
    if (r < 0) {
        return r;
    }
    struct wire_room room = {.memory = c->room.data, .size_bytes = c->room.room};
    r = wire_read(frame, (size_t)count, &room, ret, err);
    c->taken += (size_t)count;
    return r < 0 ? r : 1;
}
