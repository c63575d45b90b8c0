/* The listener: sockets, and the libmicrohttpd daemon that serves them.
 *
 * Layer: services. Thread: the loop's.
 */
#include "http/internal.h"

#include "base/err.h"
#include "base/system/error_text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 512,
    BODY_BYTES_MAX = 3 << 20,
    QUEUE_BYTES_MAX = 4 << 20,
    QUEUES_BYTES_MAX = 64 << 20,
    IDLE_TIMEOUT_S = 120,
    HEAD_TIMEOUT_MS = 20000,
    BODY_TIMEOUT_MS = 60000,
    BACKLOG = 511,
};

/* ---- sockets ---- */

static int open_unix(const char *path, struct muster_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        return muster_fail(err, MUSTER_ECREATE, "the socket's path is too long (107 bytes): %s",
                           path);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot make a socket: %s", error_text(errno));
    }
    (void)unlink(path);
    mode_t mask = umask(0177);
    int r = bind(fd, (const struct sockaddr *)&address, sizeof address);
    int saved = errno;
    umask(mask);
    if (r < 0 || listen(fd, BACKLOG) < 0) {
        saved = r < 0 ? saved : errno;
        close(fd);
        return muster_fail(err, MUSTER_ECREATE, "cannot listen on %s: %s", path, strerror(saved));
    }
    return fd;
}

static int open_tcp(const char *host, int port, struct muster_err *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        return muster_fail(err, MUSTER_EINVAL, "no IPv4 address to listen on: \"%.100s\"", host);
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot make a socket: %s", error_text(errno));
    }
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        listen(fd, BACKLOG) < 0) {
        int saved = errno;
        close(fd);
        return muster_fail(err, MUSTER_EUNAVAIL, "cannot listen on %s:%d: %s", host, port,
                           strerror(saved));
    }
    return fd;
}

static int open_listener(const struct http_options *options, struct muster_err *err)
{
    return options->socket_path
               ? open_unix(options->socket_path, err)
               : open_tcp(options->address ? options->address : "127.0.0.1", options->port, err);
}

static int port_of(int fd)
{
    struct sockaddr_in address = {0};
    socklen_t length = sizeof address;
    return getsockname(fd, (struct sockaddr *)&address, &length) == 0 ? ntohs(address.sin_port) : 0;
}

static void free_server(struct http_server *server)
{
    visits_done(server);
    certificate_pair_done(&server->certificate);
    free(server->socket_path);
    free(server->token);
    free(server->refused_type);
    free(server->refused_body);
    free(server);
}

/* ---- start and stop ---- */

static struct http_limits with_defaults(struct http_limits l)
{
    l.connections_max = l.connections_max ? l.connections_max : CONNECTIONS_MAX;
    l.body_bytes_max = l.body_bytes_max ? l.body_bytes_max : BODY_BYTES_MAX;
    l.queue_bytes_max = l.queue_bytes_max ? l.queue_bytes_max : QUEUE_BYTES_MAX;
    l.queues_bytes_max = l.queues_bytes_max ? l.queues_bytes_max : QUEUES_BYTES_MAX;
    l.head_timeout_ms = l.head_timeout_ms ? l.head_timeout_ms : HEAD_TIMEOUT_MS;
    l.body_timeout_ms = l.body_timeout_ms ? l.body_timeout_ms : BODY_TIMEOUT_MS;
    l.owner_uid = l.owner_uid ? l.owner_uid : geteuid();
    l.idle_timeout_s = l.idle_timeout_s ? l.idle_timeout_s : IDLE_TIMEOUT_S;
    return l;
}

static char *copy(const char *text, bool *failed)
{
    char *result = text ? strdup(text) : NULL;
    *failed = *failed || (text && !result);
    return result;
}

static struct http_server *new_server(uv_loop_t *loop, const struct http_options *options)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (!server) {
        return NULL;
    }
    bool failed = false;
    server->loop = loop;
    server->limits = with_defaults(options->limits);
    server->socket_path = copy(options->socket_path, &failed);
    server->token = copy(options->token, &failed);
    server->refused_type =
        copy(options->refused_body ? options->refused_type : "text/plain", &failed);
    server->refused_body = copy(
        options->refused_body ? options->refused_body : "Unauthorized: no valid token\n", &failed);
    if (failed) {
        free_server(server);
        return NULL;
    }
    return server;
}

static struct MHD_Daemon *start_daemon(struct http_server *server,
                                       const struct http_options *options, int fd)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)tls_retrieve},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL},
    };
    if (options->tls || options->key_pem) {
        flags |= MHD_USE_TLS;
    } else {
        tls[0].option = MHD_OPTION_END;
    }
    return MHD_start_daemon(
        flags, 0, visits_admit, server, exchange_serve, server, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_NOTIFY_COMPLETED, exchange_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        visits_notice, server, MHD_OPTION_URI_LOG_CALLBACK, entry_look_at, server,
        MHD_OPTION_CONNECTION_LIMIT, server->limits.connections_max, MHD_OPTION_CONNECTION_TIMEOUT,
        server->limits.idle_timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

int http_server_start(uv_loop_t *loop, const struct http_options *options, http_handler handler,
                      void *arg, struct http_server **ret, struct muster_err *err)
{
    int fd = open_listener(options, err);
    if (fd < 0) {
        return fd;
    }
    struct http_server *server = new_server(loop, options);
    if (!server) {
        close(fd);
        return err_no_memory(err);
    }
    server->handler = handler;
    server->arg = arg;
    server->port = options->socket_path ? 0 : port_of(fd);
    int r = options->key_pem
                ? http_server_set_certificate(server, options->key_pem, options->cert_pem, err)
                : 0;
    if (r == 0 && !(server->daemon = start_daemon(server, options, fd))) {
        r = muster_fail(err, MUSTER_EUNAVAIL, "the HTTP server cannot start: %s",
                        error_text(errno));
    }
    if (r < 0) {
        close(fd);
        free_server(server);
        return r;
    }
    drive_start(server);
    *ret = server;
    return 0;
}

int http_server_port(const struct http_server *server)
{
    return server->port;
}

void http_server_stop(struct http_server *server)
{
    if (!server) {
        return;
    }
    for (struct exchange *x = server->exchanges; x; x = x->next) {
        exchange_abandon(x);
    }
    upgrade_end_all(server);
    drive_stop(server, free_server);
    MHD_stop_daemon(server->daemon);
    if (server->socket_path) {
        (void)unlink(server->socket_path);
    }
}
