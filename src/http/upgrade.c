/* Connections that leave HTTP: the descriptor of a Unix socket is handed over, or spoken to in
 * this loop; TLS is always spoken in this loop.
 *
 * Over TLS libmicrohttpd (0.9.75) would pass the bytes on through a buffer of four. So it keeps the
 * connection suspended, as if an answer were still to come, and its session is ours until then.
 *
 * Layer: services. Thread: the loop's. Ownership: a socket is its taker's until http_socket_close.
 */
#include "http/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_BYTES_MAX = 4096 };

struct http_socket {
    int fd;                     /* our own; over TLS it is libmicrohttpd's */
    struct http_server *server; /* NULL: the server has stopped */
    struct http_socket *previous;
    struct http_socket *next;
    struct exchange *x;       /* set over TLS; NULL once the exchange is over */
    gnutls_session_t session; /* set while x is */
    void (*on_end)(void *arg);
    void *arg;
};

static struct http_socket *new_socket(struct http_server *server, int fd)
{
    struct http_socket *socket = fd >= 0 ? calloc(1, sizeof *socket) : NULL;
    if (socket) {
        *socket = (struct http_socket){.fd = fd, .server = server, .next = server->sockets};
        if (socket->next) {
            socket->next->previous = socket;
        }
        server->sockets = socket;
    }
    return socket;
}

/* Takes the connection out of the server, which does not use it any more. */
static void part(struct http_socket *socket)
{
    struct http_server *server = socket->server;
    if (!server) {
        return;
    }
    if (socket->previous) {
        socket->previous->next = socket->next;
    } else {
        server->sockets = socket->next;
    }
    if (socket->next) {
        socket->next->previous = socket->previous;
    }
    socket->server = NULL;
    if (socket->x) {
        struct exchange *x = socket->x;
        socket->x = NULL;
        socket->session = NULL;
        exchange_abandon(x);
    }
}

/* ---- from HTTP ---- */

static void hand_over(struct exchange *x, int fd)
{
    void (*take)(void *, int) = x->take;
    x->take = NULL;
    if (take) {
        take(x->take_arg, fd);
    }
}

static void hand_socket(struct exchange *x, struct http_socket *socket)
{
    void (*take)(void *, struct http_socket *) = x->take_socket;
    x->take_socket = NULL;
    if (take) {
        take(x->take_arg, socket);
    }
}

/* A client may send only after it has read the head: if it has sent bytes before, it is refused. */
void upgrade_done(void *exchange, struct MHD_Connection *connection, void *place, const char *early,
                  size_t early_count, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
    struct exchange *x = exchange;
    struct http_server *server = x->server;
    (void)connection;
    (void)place;
    (void)early;
    int own = early_count == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (own >= 0) {
        (void)fcntl(own, F_SETFL, x->take_socket ? O_NONBLOCK : 0);
    }
    if (x->take_socket) {
        struct http_socket *socket = new_socket(server, own);
        if (!socket && own >= 0) {
            close(own);
        }
        hand_socket(x, socket);
    } else {
        hand_over(x, own);
    }
    MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
    drive_wake(server); /* libmicrohttpd's copy of the descriptor is closed in its next run */
}

/* The head is short enough to be written at once, as no other bytes wait to be sent. */
static bool say_head(struct exchange *x, gnutls_session_t session)
{
    char head[HEAD_BYTES_MAX];
    int used = snprintf(
        head, sizeof head,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n", x->protocol);
    for (size_t i = 0; i < x->header_count && used < HEAD_BYTES_MAX; i++) {
        used += snprintf(head + used, sizeof head - (size_t)used, "%s: %s\r\n", x->headers[i][0],
                         x->headers[i][1]);
    }
    used += used < HEAD_BYTES_MAX ? snprintf(head + used, sizeof head - (size_t)used, "\r\n") : 0;
    return used < HEAD_BYTES_MAX && gnutls_record_send(session, head, (size_t)used) == used;
}

void upgrade_take_over(struct exchange *x)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    gnutls_session_t session = info ? info->tls_session : NULL;
    info = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct http_socket *socket =
        session && info && say_head(x, session) ? new_socket(x->server, info->connect_fd) : NULL;
    if (socket) {
        socket->x = x;
        socket->session = session;
        hand_socket(x, socket);
    } else {
        exchange_abandon(x);
    }
}

void upgrade_failed(struct exchange *x)
{
    hand_over(x, -1);
    hand_socket(x, NULL);
}

void upgrade_end_all(struct http_server *server)
{
    while (server->sockets) {
        struct http_socket *socket = server->sockets;
        (void)shutdown(socket->fd, SHUT_RDWR);
        if (socket->on_end) {
            socket->on_end(socket->arg);
        }
        if (server->sockets == socket) { /* the taker has not closed the socket in on_end */
            bool tls = socket->x != NULL;
            part(socket);
            socket->fd = tls ? -1 : socket->fd;
        }
    }
}

/* ---- its taker's side ---- */

int http_socket_fd(const struct http_socket *socket)
{
    return socket->fd;
}

void http_socket_on_end(struct http_socket *socket, void (*on_end)(void *arg), void *arg)
{
    socket->on_end = on_end;
    socket->arg = arg;
}

static ssize_t result_of(ssize_t n)
{
    if (n >= 0) {
        return n;
    }
    errno = n == GNUTLS_E_AGAIN ? EAGAIN : n == GNUTLS_E_INTERRUPTED ? EINTR : ECONNRESET;
    return -1;
}

ssize_t http_socket_read(struct http_socket *socket, void *bytes, size_t room)
{
    return socket->session ? result_of(gnutls_record_recv(socket->session, bytes, room))
                           : recv(socket->fd, bytes, room, MSG_DONTWAIT);
}

/* When it is called again after EAGAIN, GnuTLS sends the bytes of the first call. */
ssize_t http_socket_write(struct http_socket *socket, const void *bytes, size_t count)
{
    return socket->session ? result_of(gnutls_record_send(socket->session, bytes, count))
                           : send(socket->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool http_socket_pending(const struct http_socket *socket)
{
    return socket->session && gnutls_record_check_pending(socket->session) > 0;
}

/* Over TLS libmicrohttpd closes the descriptor. */
void http_socket_close(struct http_socket *socket)
{
    if (socket) {
        bool own = socket->fd >= 0 && !socket->x;
        part(socket);
        if (own) {
            close(socket->fd);
        }
        free(socket);
    }
}
