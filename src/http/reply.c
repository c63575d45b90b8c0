/* Makes and sends a reply: the operations that its handler has (http.h). A reply is either whole,
 * or a stream of what is written until it ends, or the connection leaves HTTP.
 *
 * What a stream's client has not read yet waits in a queue with a limit, and all queues together
 * have one.
 *
 * Layer: services. Thread: the loop's. Ownership: a reply is part of its exchange.
 */
#include "http/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 32768 };

static struct exchange *of(struct http_reply *reply)
{
    return (struct exchange *)reply;
}

/* ---- a whole answer ---- */

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

/* Gives the response to libmicrohttpd: when the running callback returns, or else by resuming the
 * connection. */
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
        exchange_resume(x);
    }
}

static void op_send(struct http_reply *reply, int status, const char *type, const void *bytes,
                    size_t count)
{
    struct exchange *x = of(reply);
    assert(x->state == EXCHANGE_HANDLING && !x->released);
    exchange_release(x);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(count, (void *)bytes, MHD_RESPMEM_MUST_COPY);
    if (!response) {
        exchange_abandon(x);
        return;
    }
    answer(x, status, type, response);
}

/* ---- a stream ---- */

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
        exchange_suspend(x);
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

/* A client that has read everything can be sent more, whatever other clients leave unread. */
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
    exchange_resume(x);
    return 0;
}

static void op_end(struct http_reply *reply)
{
    struct exchange *x = of(reply);
    assert(x->response && !x->released);
    exchange_release(x);
    exchange_resume(x);
}

/* ---- leaving HTTP ---- */

/* Answers 101; after the head of this answer the connection does not carry HTTP any more. */
static int upgrade(struct exchange *x, const char *protocol)
{
    struct MHD_Response *response = MHD_create_response_for_upgrade(upgrade_done, x);
    if (!response) {
        return MUSTER_ENOMEM;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, protocol);
    exchange_release(x);
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
        exchange_release(x);
        x->state = EXCHANGE_LEAVING;
        x->protocol = protocol;
    } else {
        r = MUSTER_EUNSUPPORTED; /* no handler leaves HTTP later than that */
    }
    x->take_socket = r < 0 ? NULL : take;
    x->take_arg = arg;
    return r;
}

const struct http_reply_ops reply_ops = {op_header, op_send,    op_start, op_write,
                                         op_end,    op_upgrade, op_leave};
