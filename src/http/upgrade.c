/* Connections that leave HTTP behind: the socket is handed over, or spoken in this loop.
 *
 * Over TLS libmicrohttpd goes on between the client and us: its handle is kept until we close, and
 * the client's own socket is watched, because libmicrohttpd reads nothing, the end included, while
 * we do not read.
 *
 * Layer: services. Thread: the loop's. Ownership: a socket is its taker's until http_socket_close;
 * its server ends it, and the descriptor stays the taker's.
 */
#include "http/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct http_socket {
    int fd;
    struct http_server *server; /* NULL: it has stopped */
    struct http_socket *previous;
    struct http_socket *next;
    struct MHD_UpgradeResponseHandle *handle; /* over TLS; else NULL */
    uv_poll_t *watch;                         /* of the client's own socket; over TLS */
};

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle);
}

static void stop_watching(struct http_socket *socket)
{
    if (socket->watch) {
        uv_poll_stop(socket->watch);
        uv_close((uv_handle_t *)socket->watch, on_watch_closed);
        socket->watch = NULL;
    }
}

static void on_disconnect(uv_poll_t *watch, int status, int events)
{
    struct http_socket *socket = watch->data;
    (void)status;
    (void)events;
    (void)shutdown(socket->fd, SHUT_RDWR);
    stop_watching(socket);
}

/* Without a watch a client's end is seen when all that it had sent is read. */
static void start_watching(struct http_socket *socket, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    uv_poll_t *watch = info ? calloc(1, sizeof *watch) : NULL;
    if (!watch || uv_poll_init(socket->server->loop, watch, info->connect_fd) != 0) {
        free(watch);
        return;
    }
    watch->data = socket;
    socket->watch = watch;
    uv_poll_start(watch, UV_DISCONNECT, on_disconnect);
}

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

/* From here on libmicrohttpd has nothing to do with it. */
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
    stop_watching(socket);
    if (socket->handle) {
        MHD_upgrade_action(socket->handle, MHD_UPGRADE_ACTION_CLOSE);
        drive_wake(server);
    }
    socket->server = NULL;
}

/* ---- from HTTP ---- */

static void hand_over(struct exchange *x, int fd)
{
    void (*take)(void *, int) = x->take;
    x->take = NULL;
    if (take) {
        take(x->take_arg, fd);
    } else if (fd >= 0) {
        close(fd);
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

/* A client speaks only after it has read the head; what one has said before is refused. */
void upgrade_done(void *exchange, struct MHD_Connection *connection, void *place, const char *early,
                  size_t early_count, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
    struct exchange *x = exchange;
    struct http_server *server = x->server;
    (void)place;
    (void)early;
    int own = early_count == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (own >= 0) {
        (void)fcntl(own, F_SETFL, x->take_socket ? O_NONBLOCK : 0);
    }
    struct http_socket *socket = x->take_socket ? new_socket(server, own) : NULL;
    if (socket && !server->socket_path) {
        socket->handle = handle;
        start_watching(socket, connection);
    } else {
        MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
    }
    if (x->take_socket) {
        if (!socket && own >= 0) {
            close(own);
        }
        hand_socket(x, socket);
    } else {
        hand_over(x, own);
    }
    drive_wake(server); /* its own copy of the socket is closed by its next run */
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
        part(socket);
    }
}

/* ---- its taker's side ---- */

int http_socket_fd(const struct http_socket *socket)
{
    return socket->fd;
}

void http_socket_close(struct http_socket *socket)
{
    if (socket) {
        part(socket);
        close(socket->fd);
        free(socket);
    }
}
