/* One request and its reply, over libmicrohttpd's suspend and resume; see reply.c for what is sent.
 *
 * A connection is suspended while its handler has nothing to say, and resumed by a write. A
 * suspended connection never notices that its client closed: a UV_DISCONNECT poll does, and resumes
 * it so that libmicrohttpd takes it down.
 *
 * Layer: services. Thread: the loop's. Ownership: the exchange lives from libmicrohttpd's first
 * call to its completion callback.
 */
#include "http/internal.h"

#include "base/cleanup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A body that is this many times larger than its limit is refused after the headers. A smaller body
 * is read to its end, since a client that is still writing would take the answer for a broken
 * connection. */
enum { OVERSIZED = 8 };

/* ---- suspend and resume ---- */

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle);
}

static void stop_watching(struct exchange *x)
{
    if (x->watch) {
        uv_poll_stop(x->watch);
        uv_close((uv_handle_t *)x->watch, on_watch_closed);
        x->watch = NULL;
    }
}

static void on_disconnect(uv_poll_t *watch, int status, int events)
{
    (void)status;
    (void)events;
    exchange_abandon(watch->data);
}

/* Without a watch (out of memory or descriptors) the next write still ends the connection. */
static void start_watching(struct exchange *x)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    uv_poll_t *watch = x->watch || !info ? NULL : calloc(1, sizeof *watch);
    if (!watch) {
        return;
    }
    if (uv_poll_init(x->server->loop, watch, info->connect_fd) != 0) {
        free(watch);
        return;
    }
    watch->data = x;
    x->watch = watch;
    uv_poll_start(watch, UV_DISCONNECT, on_disconnect);
}

void exchange_suspend(struct exchange *x)
{
    if (!x->suspended) {
        x->suspended = true;
        MHD_suspend_connection(x->connection);
        start_watching(x);
    }
}

void exchange_resume(struct exchange *x)
{
    if (x->suspended) {
        x->suspended = false;
        MHD_resume_connection(x->connection);
        drive_wake(x->server);
    }
}

void exchange_release(struct exchange *x)
{
    x->released = true;
    x->reply.on_gone = NULL;
    x->reply.on_drained = NULL;
}

void exchange_abandon(struct exchange *x)
{
    stop_watching(x);
    x->gone = true;
    if (!x->released) {
        void (*on_gone)(void *) = x->reply.on_gone;
        exchange_release(x);
        if (on_gone) {
            on_gone(x->reply.arg);
        }
    }
    exchange_resume(x);
}

/* ---- libmicrohttpd's side ---- */

static struct exchange *begin(struct http_server *server, struct MHD_Connection *connection,
                              const char *path)
{
    struct exchange *x = calloc(1, sizeof *x);
    char *copy = strdup(path);
    if (!x || !copy) {
        free(x);
        free(copy);
        return NULL;
    }
    x->reply.ops = &reply_ops;
    x->server = server;
    x->connection = connection;
    x->path = copy;
    x->stranger = !entry_permits(server, connection);
    visits_expect(connection, server->limits.body_timeout_ms);
    buf_init(&x->body, server->limits.body_bytes_max);
    /* Twice the limit: sent bytes are dropped late, many at a time. */
    buf_init(&x->queue, server->limits.queue_bytes_max * 2);
    x->next = server->exchanges;
    if (x->next) {
        x->next->previous = x;
    }
    server->exchanges = x;
    return x;
}

static void handle(struct exchange *x, const char *method)
{
    x->state = EXCHANGE_HANDLING;
    visits_expect(x->connection, 0);
    if (x->stranger) {
        entry_refuse(x);
    } else {
        exchange_call(x, method);
    }
}

/* Sends the answer if there is one, otherwise suspends the connection until there is. */
static enum MHD_Result proceed(struct exchange *x)
{
    if (x->gone) {
        return MHD_NO;
    }
    if (x->state == EXCHANGE_LEAVING) {
        x->suspended = true;
        MHD_suspend_connection(x->connection);
        upgrade_take_over(x);
        return MHD_YES;
    }
    if (x->state != EXCHANGE_ANSWERED) {
        exchange_suspend(x);
        return MHD_YES;
    }
    x->state = EXCHANGE_RESPONDING;
    return MHD_queue_response(x->connection, (unsigned)x->status, x->response);
}

static enum MHD_Result serve(struct exchange *x, const char *method)
{
    x->in_callback = true;
    if (x->state == EXCHANGE_READING) {
        handle(x, method);
    }
    enum MHD_Result result = proceed(x);
    x->in_callback = false;
    return result;
}

/* The headers are complete. If they do not say how long the body is, or say that it is far too
 * long, the request is answered at once, and the connection ends with the answer. */
static enum MHD_Result look_at_head(struct exchange *x, const char *target_fault,
                                    const char *method)
{
    const char *headers_fault = entry_headers_fault(x->connection);
    x->head_fault = target_fault ? target_fault : headers_fault;
    x->oversized =
        entry_announced_bytes(x->connection) / OVERSIZED > x->server->limits.body_bytes_max;
    return x->oversized || headers_fault ? serve(x, method) : MHD_YES;
}

enum MHD_Result exchange_serve(void *server, struct MHD_Connection *connection, const char *path,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_bytes, void **place)
{
    (void)version;
    struct exchange *x = *place;
    const char *target_fault = entry_target_fault(x);
    if (!x || target_fault) {
        *place = x = begin(server, connection, path);
        return x ? look_at_head(x, target_fault, method) : MHD_NO;
    }
    if (*upload_bytes > 0) {
        if (!x->stranger && !x->head_fault) { /* a body that will not be used is read and dropped */
            buf_add(&x->body, upload, *upload_bytes);
        }
        *upload_bytes = 0;
        return MHD_YES;
    }
    return serve(x, method);
}

static void unlink_exchange(struct exchange *x)
{
    if (x->previous) {
        x->previous->next = x->next;
    } else {
        x->server->exchanges = x->next;
    }
    if (x->next) {
        x->next->previous = x->previous;
    }
}

void exchange_completed(void *server, struct MHD_Connection *connection, void **place,
                        enum MHD_RequestTerminationCode why)
{
    (void)why;
    struct exchange *x = muster_take(*place);
    if (!x || entry_target_fault(x)) {
        return;
    }
    if (x->status != MHD_HTTP_SWITCHING_PROTOCOLS) { /* the socket is its taker's now */
        const struct http_limits *limits = &((struct http_server *)server)->limits;
        visits_expect(connection, limits->idle_timeout_s * 1000 + limits->head_timeout_ms);
    }
    x->suspended = false; /* libmicrohttpd has finished with it: no resume */
    exchange_abandon(x);
    upgrade_failed(x);
    unlink_exchange(x);
    if (x->response) {
        MHD_destroy_response(x->response);
    }
    for (size_t i = 0; i < HEADERS_MAX; i++) {
        free(x->headers[i][0]);
        free(x->headers[i][1]);
    }
    x->server->queued_bytes -= x->queue.used - x->sent;
    buf_done(&x->body);
    buf_done(&x->queue);
    free(x->path);
    free(x);
}
