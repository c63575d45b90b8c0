/* kubectl exec: between a client's WebSocket and the session in the rank
 * (process/monitor/session.h), which is reached over a socket pair whose other end the supervisor
 * has.
 *
 * What one side does not take stops the other: nothing is read from the session while the WebSocket
 * has no room, and nothing from the WebSocket while the session does not read.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: the stream owns itself.
 */
#include "daemon/stream/streams.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/system/error_text.h"
#include "daemon/stream/channels.h"
#include "daemon/stream/peer.h"
#include "daemon/stream/rank_command.h"
#include "process/monitor/session.h"
#include "process/wire/frame.h"
#include "process/wire/passing.h"
#include "websocket/connection.h"
#include "websocket/handshake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { PAUSE_BYTES = 64 << 10, IN_BYTES_MAX = 256 << 10 };

struct exec {
    struct streams *streams;
    struct rank_command *command;
    struct websocket *ws;
    struct peer *session;
    bool wanted[CHANNEL_STATUS]; /* the channels that the client asked for */
    struct channel_reader reader;
    struct buf in; /* frames from the session */
};

/* ---- life ---- */

static void free_exec(struct exec *x)
{
    streams_drop(x->streams);
    rank_command_free(x->command);
    buf_done(&x->in);
    free(x);
}

/* Ends the stream; the session ends when its socket is closed. */
static void end(struct exec *x, enum websocket_code code)
{
    websocket_finish(x->ws, code);
    peer_close(x->session);
    free_exec(x);
}

/* ---- to the client ---- */

static void tell(struct exec *x, enum channel channel, const char *bytes, size_t count)
{
    const char prefix = (char)channel;
    if (count > 0 && (channel == CHANNEL_STATUS || x->wanted[channel])) {
        websocket_send(x->ws, &prefix, 1, bytes, count);
    }
}

/* Sends the Status, and ends the stream. A command that could not be run is reported where its own
 * errors would be. */
static void tell_end(struct exec *x, int code, const char *message)
{
    muster_auto(doc) json_t *status = channel_status(code);
    muster_auto(free) char *text = status ? doc_print(status) : NULL;
    tell(x, CHANNEL_STDERR, message, strlen(message));
    tell(x, CHANNEL_STDERR, "\n", *message ? 1 : 0);
    tell(x, CHANNEL_STATUS, text ? text : "{}", strlen(text ? text : "{}"));
    end(x, WEBSOCKET_NORMAL);
}

static void take_end(struct exec *x, const struct frame *frame)
{
    muster_auto(doc) json_t *said = NULL;
    (void)doc_parse(frame->bytes, frame->count, &said, NULL);
    tell_end(x, (int)doc_int(said, "code", SESSION_NOT_SET_UP), doc_text(said, "message", ""));
}

/* Sends frames to the client until it has no room. Returns false if the stream is over. */
static bool pass_frames(struct exec *x)
{
    struct frame frame;
    long length = 0;
    while (websocket_has_room(x->ws) &&
           (length = frame_read(buf_str(&x->in), x->in.used, &frame)) > 0) {
        if (frame.kind == FRAME_END) {
            take_end(x, &frame);
            return false;
        }
        if (frame.kind == FRAME_STDOUT || frame.kind == FRAME_STDERR) {
            tell(x, (enum channel)frame.kind, frame.bytes, frame.count);
        }
        buf_consume(&x->in, (size_t)length);
    }
    if (length < 0 || buf_failed(&x->in)) {
        end(x, WEBSOCKET_PROTOCOL_ERROR);
        return false;
    }
    return true;
}

static void on_session_bytes(void *arg, const char *bytes, size_t count)
{
    struct exec *x = arg;
    buf_add(&x->in, bytes, count);
    if (pass_frames(x) && !websocket_has_room(x->ws)) {
        peer_pause(x->session);
    }
}

static void on_room(void *arg)
{
    struct exec *x = arg;
    if (pass_frames(x) && websocket_has_room(x->ws)) {
        peer_resume(x->session);
    }
}

static void on_session_end(void *arg, const char *why)
{
    (void)why;
    tell_end(arg, SESSION_GONE, "the rank ended while the command ran");
}

/* ---- to the session ---- */

static void send_frame(struct exec *x, enum frame_kind kind, const char *bytes, size_t count)
{
    char head[FRAME_HEAD_BYTES];
    frame_head(kind, count, head);
    peer_write(x->session, head, sizeof head, bytes, count);
}

static void send_input(struct exec *x, const struct channel_data *data)
{
    for (size_t at = 0; at < data->count; at += FRAME_BYTES_MAX) {
        size_t left = data->count - at;
        send_frame(x, FRAME_STDIN, data->bytes + at,
                   left < FRAME_BYTES_MAX ? left : FRAME_BYTES_MAX);
    }
}

static void send_size(struct exec *x, const struct channel_data *data)
{
    muster_auto(doc) json_t *size = channel_size(data);
    muster_auto(free) char *text = size ? doc_print(size) : NULL;
    if (text) {
        send_frame(x, FRAME_RESIZE, text, strlen(text));
    }
}

static void on_piece(void *arg, const struct websocket_piece *piece)
{
    struct exec *x = arg;
    struct channel_data data;
    if (!channel_read(&x->reader, piece, &data)) {
        return;
    }
    if (data.channel == CHANNEL_RESIZE) {
        send_size(x, &data);
    } else if (x->wanted[CHANNEL_STDIN] && data.channel == CHANNEL_STDIN) {
        send_input(x, &data);
    } else if (data.channel == CHANNEL_CLOSE && data.count == 1 && data.bytes[0] == CHANNEL_STDIN) {
        send_frame(x, FRAME_STDIN, "", 0);
    }
    if (peer_queued(x->session) > PAUSE_BYTES) {
        websocket_pause(x->ws);
    }
}

static void on_session_drained(void *arg)
{
    struct exec *x = arg;
    websocket_resume(x->ws);
}

static void on_gone(void *arg)
{
    end(arg, WEBSOCKET_NORMAL);
}

/* ---- opening ---- */

/* Sends the command to the rank. Returns 0 if it was sent. */
static int begin(struct exec *x, struct muster_err *err)
{
    const struct peer_hooks hooks = {x, on_session_bytes, on_session_drained, on_session_end};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot make a socket: %s", error_text(errno));
    }
    int r = rank_command_send(x->command, ends[1], err);
    passing_close(&ends[1], 1);
    if (r < 0) {
        passing_close(&ends[0], 1);
        return r;
    }
    return peer_open(x->streams->loop, ends[0], &hooks, &x->session, err);
}

static void on_socket(void *arg, struct http_socket *socket)
{
    struct exec *x = arg;
    const struct websocket_hooks hooks = {x, on_piece, on_room, on_gone};
    struct muster_err err = MUSTER_ERR_INIT;
    if (!socket || websocket_open(x->streams->loop, socket, &hooks, &x->ws, &err) < 0) {
        free_exec(x);
    } else if (begin(x, &err) < 0) {
        tell_end(x, SESSION_GONE, err.text);
    }
}

/* Makes a session's description from the query; NULL if out of memory. */
static json_t *how_of(const struct http_request *request)
{
    json_t *words = json_array();
    for (size_t i = 0; i < request->query_count; i++) {
        if (strcmp(request->query[i].name, "command") == 0) {
            json_array_append_new(words, json_string(request->query[i].value));
        }
    }
    const char *container = http_query(request, "container");
    return json_pack("{s:o, s:s*, s:b, s:b}", "command", words, "container",
                     container && *container ? container : NULL, "stdin",
                     http_query_bool(request, "stdin"), "tty", http_query_bool(request, "tty"));
}

static struct exec *new_exec(struct streams *streams, const struct http_request *request)
{
    static const char *const names[] = {"stdin", "stdout", "stderr"};
    struct exec *x = calloc(1, sizeof *x);
    for (size_t i = 0; x && i < CHANNEL_STATUS; i++) {
        x->wanted[i] = http_query_bool(request, names[i]);
    }
    if (x) {
        x->streams = streams;
        buf_init(&x->in, IN_BYTES_MAX);
        streams_add(streams);
    }
    return x;
}

int stream_exec(struct streams *streams, const json_t *pod, const struct http_request *request,
                struct http_reply *reply, struct muster_err *err)
{
    const char *protocol = stream_protocol(request, channel_protocols, err);
    if (!protocol) {
        return MUSTER_EINVAL;
    }
    struct exec *x = new_exec(streams, request);
    muster_auto(doc) json_t *how = how_of(request);
    if (!x || !how) {
        return err_no_memory(err);
    }
    int r = rank_command_new(streams->home, streams->store, pod, how, &x->command, err);
    r = r < 0 ? r : websocket_accept(request, reply, protocol, on_socket, x, err);
    if (r < 0) {
        free_exec(x);
    }
    return r;
}
