/* kubectl attach: what a container prints from now on, and its standard input where it has one.
 *
 * The output is the container's log, followed: to logs.h a WebSocket is a reply like any other.
 * Standard output and error are one there, in their order.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: the stream owns itself.
 */
#include "daemon/stream/streams.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/stream/channels.h"
#include "daemon/stream/logs.h"
#include "daemon/stream/peer.h"
#include "daemon/stream/supervisor_socket.h"
#include "websocket/connection.h"
#include "websocket/handshake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { PAUSE_BYTES = 64 << 10, MESSAGE_BYTES_MAX = 64 << 10 };

struct attach {
    struct http_reply reply; /* the reply to which the log is written; must be first */
    struct streams *streams;
    json_t *pod;
    char *container;
    struct websocket *ws;
    bool wanted; /* the client wants the output */
    bool full;   /* the log waits until the client has room */
    struct channel_reader reader;
    struct peer *input; /* NULL: the client has not asked for it, or it has ended */
    bool has_input;
};

static void free_attach(struct attach *a)
{
    streams_drop(a->streams);
    json_decref(a->pod);
    free(a->container);
    free(a);
}

static void end(struct attach *a)
{
    websocket_finish(a->ws, WEBSOCKET_NORMAL);
    peer_close(a->input);
    free_attach(a);
}

static void tell(struct attach *a, enum channel channel, const char *bytes, size_t count)
{
    const char prefix = (char)channel;
    websocket_send(a->ws, &prefix, 1, bytes, count);
}

/* ---- the log's reply ---- */

static void op_header(struct http_reply *reply, const char *name, const char *value)
{
    (void)reply;
    (void)name;
    (void)value;
}

/* Sends a Status on the last channel, because there is no log. */
static void op_send(struct http_reply *reply, int status, const char *type, const void *bytes,
                    size_t count)
{
    struct attach *a = (struct attach *)reply;
    (void)status;
    (void)type;
    tell(a, CHANNEL_STATUS, bytes, count < MESSAGE_BYTES_MAX ? count : MESSAGE_BYTES_MAX);
    end(a);
}

static int op_start(struct http_reply *reply, int status, const char *type)
{
    (void)reply;
    (void)status;
    (void)type;
    return 0;
}

static int op_write(struct http_reply *reply, const void *bytes, size_t count)
{
    struct attach *a = (struct attach *)reply;
    if (!a->wanted) {
        return 0;
    }
    a->full = !websocket_has_room(a->ws) || count > MESSAGE_BYTES_MAX;
    if (a->full) {
        return MUSTER_EAGAIN;
    }
    tell(a, CHANNEL_STDOUT, bytes, count);
    return 0;
}

static void op_end(struct http_reply *reply)
{
    struct attach *a = (struct attach *)reply;
    muster_auto(doc) json_t *status = channel_status(0);
    muster_auto(free) char *text = status ? doc_print(status) : NULL;
    tell(a, CHANNEL_STATUS, text ? text : "{}", strlen(text ? text : "{}"));
    end(a);
}

static const struct http_reply_ops ops = {
    .header = op_header, .send = op_send, .start = op_start, .write = op_write, .end = op_end};

/* ---- the client ---- */

static void on_piece(void *arg, const struct websocket_piece *piece)
{
    struct attach *a = arg;
    struct channel_data data;
    if (!channel_read(&a->reader, piece, &data) || !a->input) {
        return;
    }
    if (data.channel == CHANNEL_STDIN) {
        peer_write(a->input, "", 0, data.bytes, data.count);
    } else if (data.channel == CHANNEL_CLOSE && data.count == 1 && data.bytes[0] == CHANNEL_STDIN) {
        peer_finish(a->input);
    }
    if (peer_queued(a->input) > PAUSE_BYTES) {
        websocket_pause(a->ws);
    }
}

static void on_room(void *arg)
{
    struct attach *a = arg;
    if (a->full) {
        a->full = false;
        a->reply.on_drained(a->reply.arg);
    }
}

static void on_gone(void *arg)
{
    struct attach *a = arg;
    if (a->reply.on_gone) {
        a->reply.on_gone(a->reply.arg);
    }
    end(a);
}

/* ---- standard input ---- */

static void on_input_bytes(void *arg, const char *bytes, size_t count)
{
    (void)arg;
    (void)bytes;
    (void)count; /* the supervisor sends nothing on standard input */
}

static void on_input_drained(void *arg)
{
    struct attach *a = arg;
    websocket_resume(a->ws);
}

/* The process does not read its standard input any more; the output goes on. */
static void on_input_end(void *arg, const char *why)
{
    struct attach *a = arg;
    (void)why;
    peer_close(a->input);
    a->input = NULL;
    websocket_resume(a->ws);
}

static int open_input(struct attach *a, struct muster_err *err)
{
    const struct peer_hooks hooks = {a, on_input_bytes, on_input_drained, on_input_end};
    struct handover_packet packet = {.kind = HANDOVER_STDIN};
    int fd = -1;
    (void)snprintf(packet.id, sizeof packet.id, "%s/%s/", doc_text(a->pod, "metadata.uid", ""),
                   a->container);
    int r = supervisor_socket(a->streams->home, a->pod, &packet, SOCK_STREAM, &fd, err);
    if (r < 0) {
        return r;
    }
    return peer_open(a->streams->loop, fd, &hooks, &a->input, err);
}

/* ---- opening ---- */

static void on_socket(void *arg, struct http_socket *socket)
{
    struct attach *a = arg;
    const struct websocket_hooks hooks = {a, on_piece, on_room, on_gone};
    struct muster_err err = MUSTER_ERR_INIT;
    if (!socket || websocket_open(a->streams->loop, socket, &hooks, &a->ws, &err) < 0) {
        free_attach(a);
        return;
    }
    const struct api_log_query query = {
        .container = a->container, .follow = true, .attempt = -1, .limit_bytes = -1};
    if (a->has_input && open_input(a, &err) < 0) {
        api_send_error(&a->reply, &err);
        return;
    }
    logs_stream(a->streams->loop, a->streams->home, &query, a->pod, &a->reply);
}

static struct attach *new_attach(struct streams *streams, const json_t *pod,
                                 const struct http_request *request)
{
    const char *container = http_query(request, "container");
    if (!container || !*container) {
        container = doc_text(pod, "spec.containers.0.name", "");
    }
    struct attach *a = calloc(1, sizeof *a);
    char *name = strdup(container);
    if (!a || !name) {
        free(a);
        free(name);
        return NULL;
    }
    *a = (struct attach){.reply.ops = &ops,
                         .streams = streams,
                         .pod = json_incref((json_t *)pod),
                         .container = name,
                         .wanted = http_query_bool(request, "stdout") ||
                                   http_query_bool(request, "stderr"),
                         .has_input = http_query_bool(request, "stdin")};
    streams_add(streams);
    return a;
}

int stream_attach(struct streams *streams, const json_t *pod, const struct http_request *request,
                  struct http_reply *reply, struct muster_err *err)
{
    const char *protocol = stream_protocol(request, channel_protocols, err);
    if (!protocol) {
        return MUSTER_EINVAL;
    }
    struct attach *a = new_attach(streams, pod, request);
    if (!a) {
        return err_no_memory(err);
    }
    int r = websocket_accept(request, reply, protocol, on_socket, a, err);
    if (r < 0) {
        free_attach(a);
    }
    return r;
}
