/* libmicrohttpd under the loop: its epoll descriptor and its timeouts run it.
 *
 * Layer: services. Thread: the loop's.
 */
#include "http/internal.h"

#include <assert.h>

enum { RUNS_AFTER_RESUME = 2 };

static void drive(struct http_server *server);

static void on_timer(uv_timer_t *timer)
{
    drive(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    drive(poll->data);
}

unsigned http_server_connections(const struct http_server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info ? info->num_connections : 0;
}

/* When libmicrohttpd has reached its connection limit, it stops listening. When a connection ends,
 * it listens again only in its next run, for which it sets no timeout (0.9.75). */
static void run(struct http_server *server)
{
    unsigned before = http_server_connections(server);
    MHD_run(server->daemon);
    if (http_server_connections(server) < before && server->runs_owed == 0) {
        server->runs_owed = 1;
    }
}

static void drive(struct http_server *server)
{
    server->runs_owed -= server->runs_owed > 0;
    run(server);
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    if (server->runs_owed > 0) {
        uv_timer_start(&server->timer, on_timer, 0, 0);
    } else if (MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES) {
        uv_timer_start(&server->timer, on_timer, timeout_ms, 0);
    } else {
        uv_timer_stop(&server->timer);
    }
}

void drive_wake(struct http_server *server)
{
    server->runs_owed = RUNS_AFTER_RESUME;
    if (!uv_is_closing((uv_handle_t *)&server->timer)) {
        uv_timer_start(&server->timer, on_timer, 0, 0);
    }
}

void drive_start(struct http_server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    uv_timer_init(server->loop, &server->timer);
    uv_timer_init(server->loop, &server->check);
    server->check.data = server;
    int r = uv_poll_init(server->loop, &server->poll, info->epoll_fd);
    assert(r == 0 && "an epoll descriptor can be polled");
    (void)r;
    server->timer.data = server;
    server->poll.data = server;
    server->open_handles = 3;
    uv_poll_start(&server->poll, UV_READABLE, on_poll);
}

static void on_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;
    if (--server->open_handles == 0) {
        server->on_stopped(server);
    }
}

void drive_stop(struct http_server *server, void (*on_stopped)(struct http_server *server))
{
    server->on_stopped = on_stopped;
    uv_poll_stop(&server->poll);
    uv_close((uv_handle_t *)&server->poll, on_closed);
    uv_close((uv_handle_t *)&server->timer, on_closed);
    uv_close((uv_handle_t *)&server->check, on_closed);
}
