/* One request and its reply, whole or streamed, over libmicrohttpd's suspend and resume.
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

/* A body so many times over its limit is refused at its head. Of a smaller one the rest is read,
 * since a client that still writes would take the answer for a broken connection. */
enum { BLOCK_BYTES = 32768, OVERSIZED = 8 };

static struct exchange *of(struct http_reply *reply)
{
    return (struct exchange *)reply;
}

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

/* Without a watch (out of memory or descriptors) the connection still ends with the next write. */
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

static void suspend(struct exchange *x)
{
    if (!x->suspended) {
        x->suspended = true;
        MHD_suspend_connection(x->connection);
        start_watching(x);
    }
}

static void resume(struct exchange *x)
{
    if (x->suspended) {
        x->suspended = false;
        MHD_resume_connection(x->connection);
        drive_wake(x->server);
    }
}

/* From here on the handler may not touch the reply. */
static void release(struct exchange *x)
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
        release(x);
        if (on_gone) {
            on_gone(x->reply.arg);
        }
    }
    resume(x);
}

/* ---- the reply's operations ---- */

static void op_header(struct http_reply *reply, const char *name, const char *value)
{
    struct exchange *x = of(reply);
    assert(!x->response && "headers come before the answer");
    if (x->header_count < HEADERS_MAX) {
        char **pair = x->headers[x->header_count];
        pair[0] = strdup(name);
        pair[1] = strndup(value, HEADER_BYTES_MAX);
        x->header_count += pair[0] && pair[1];
    }
}

/* Hands the response over: now, when libmicrohttpd is calling us anyway, else by waking it. */
static void answer(struct exchange *x, int status, const char *type, struct MHD_Response *response)
{
    x->status = status;
    x->response = response;
    x->state = EXCHANGE_ANSWERED;
    if (type) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    }
    for (size_t i = 0; i < x->header_count; i++) {
        MHD_add_response_header(response, x->headers[i][0], x->headers[i][1]);
    }
    if (!x->in_callback) {
        resume(x);
    }
}

static void op_send(struct http_reply *reply, int status, const char *type, const void *bytes,
                    size_t count)
{
    struct exchange *x = of(reply);
    assert(x->state == EXCHANGE_HANDLING && !x->released);
    release(x);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(count, (void *)bytes, MHD_RESPMEM_MUST_COPY);
    if (!response) {
        exchange_abandon(x);
        return;
    }
    answer(x, status, type, response);
}

static ssize_t read_stream(void *arg, uint64_t position, char *into, size_t room)
{
    struct exchange *x = arg;
    (void)position;
    size_t waiting = x->queue.used - x->sent;
    if (x->gone) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (waiting == 0) {
        if (x->released) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        suspend(x);
        return 0;
    }
    size_t count = waiting < room ? waiting : room;
    memcpy(into, x->queue.data + x->sent, count);
    x->sent += count;
    x->server->queued_bytes -= count;
    if (x->sent >= x->queue.used / 2) {
        buf_consume(&x->queue, x->sent);
        x->sent = 0;
    }
    if (x->full && waiting - count < x->server->limits.queue_bytes_max / 2) {
        x->full = false;
        if (x->reply.on_drained) {
            x->reply.on_drained(x->reply.arg);
        }
    }
    return (ssize_t)count;
}

static int op_start(struct http_reply *reply, int status, const char *type)
{
    struct exchange *x = of(reply);
    assert(x->state == EXCHANGE_HANDLING && !x->released);
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_stream, x, NULL);
    if (!response) {
        return MUSTER_ENOMEM;
    }
    answer(x, status, type, response);
    return 0;
}

/* Who has read all gets the next one, however much others leave unread. */
static bool has_room(const struct exchange *x, size_t count)
{
    const struct http_limits *limits = &x->server->limits;
    size_t waiting = x->queue.used - x->sent;
    return waiting + count <= limits->queue_bytes_max &&
           (waiting == 0 || x->server->queued_bytes + count <= limits->queues_bytes_max);
}

static int op_write(struct http_reply *reply, const void *bytes, size_t count)
{
    struct exchange *x = of(reply);
    assert(x->response && !x->released);
    if (!has_room(x, count)) {
        x->full = true;
        return MUSTER_EAGAIN;
    }
    buf_add(&x->queue, bytes, count);
    if (buf_failed(&x->queue)) {
        x->queue.failed = false;
        return MUSTER_EAGAIN;
    }
    x->server->queued_bytes += count;
    resume(x);
    return 0;
}

static void op_end(struct http_reply *reply)
{
    struct exchange *x = of(reply);
    assert(x->response && !x->released);
    release(x);
    resume(x);
}

/* 101: the head of the answer is the last of HTTP. */
static int upgrade(struct exchange *x, const char *protocol)
{
    struct MHD_Response *response = MHD_create_response_for_upgrade(upgrade_done, x);
    if (!response) {
        return MUSTER_ENOMEM;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, protocol);
    release(x);
    answer(x, MHD_HTTP_SWITCHING_PROTOCOLS, NULL, response);
    return 0;
}

static int op_upgrade(struct http_reply *reply, const char *protocol,
                      void (*take)(void *arg, int fd), void *arg)
{
    struct exchange *x = of(reply);
    assert(x->state == EXCHANGE_HANDLING && !x->released);
    int r = x->server->socket_path ? upgrade(x, protocol) : MUSTER_EUNSUPPORTED;
    x->take = r < 0 ? NULL : take;
    x->take_arg = arg;
    return r;
}

static int op_leave(struct http_reply *reply, const char *protocol,
                    void (*take)(void *arg, struct http_socket *socket), void *arg)
{
    struct exchange *x = of(reply);
    assert(x->state == EXCHANGE_HANDLING && !x->released);
    int r = 0;
    if (x->server->socket_path) {
        r = upgrade(x, protocol);
    } else if (x->in_callback) {
        release(x);
        x->state = EXCHANGE_LEAVING;
        x->protocol = protocol;
    } else {
        r = MUSTER_EUNSUPPORTED; /* an answer that comes later: nobody asks for that */
    }
    x->take_socket = r < 0 ? NULL : take;
    x->take_arg = arg;
    return r;
}

static const struct http_reply_ops ops = {op_header, op_send,    op_start, op_write,
                                          op_end,    op_upgrade, op_leave};

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
    x->reply.ops = &ops;
    x->server = server;
    x->connection = connection;
    x->path = copy;
    x->stranger = !entry_permits(server, connection);
    visits_expect(connection, server->limits.body_timeout_ms);
    buf_init(&x->body, server->limits.body_bytes_max);
    /* Twice: what was sent is dropped late, in one go. */
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

/* Answers if there is an answer, else waits for one. */
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
        suspend(x);
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

/* The head is there. Where it does not say how long the body is, or that it is far too long, it is
 * answered at once, and the connection ends with that. */
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
        if (!x->stranger && !x->head_fault) { /* what nobody will look at is read and forgotten */
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
    if (x->status != MHD_HTTP_SWITCHING_PROTOCOLS) { /* that one's socket is another's by now */
        const struct http_limits *limits = &((struct http_server *)server)->limits;
        visits_expect(connection, limits->idle_timeout_s * 1000 + limits->head_timeout_ms);
    }
    x->suspended = false; /* libmicrohttpd is done with it: no resume */
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
