/* See connection.h. */
#include "websocket/connection.h"

#include "base/buf.h"
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    IN_BYTES = 64 << 10,
    FULL_BYTES = 256 << 10, /* no room above it; a message and control frames still fit */
    OUT_BYTES_MAX = FULL_BYTES + WEBSOCKET_MESSAGE_BYTES_MAX + (4 << 10),
    CLOSING_MS = 5000, /* for a client that does not read the rest, or does not close */
};

enum state {
    OPEN,
    CLOSING, /* a close frame is queued or was sent */
    GONE,    /* the connection has ended */
};

struct websocket {
    struct http_socket *socket;
    struct websocket_hooks hooks;
    uv_poll_t poll;
    uv_timer_t limit; /* runs after websocket_finish */
    int open_handles;
    enum state state;
    bool paused;
    bool reading; /* pieces are being given to on_piece */
    bool finished;
    bool closed; /* its handles are closed, or are closing */
    struct websocket_decoder decoder;
    struct buf out;
    size_t sent; /* bytes of `out` */
    size_t used; /* bytes of `in` */
    char in[IN_BYTES];
};

static void on_poll(uv_poll_t *poll, int status, int events);

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle)
{
    struct websocket *ws = handle->data;
    if (--ws->open_handles == 0) {
        http_socket_close(ws->socket);
        buf_done(&ws->out);
        free(ws);
    }
}

static void close_now(struct websocket *ws)
{
    if (!ws->closed) {
        ws->closed = true;
        uv_poll_stop(&ws->poll);
        uv_close((uv_handle_t *)&ws->poll, on_closed);
        uv_close((uv_handle_t *)&ws->limit, on_closed);
    }
}

static void on_limit(uv_timer_t *timer)
{
    close_now(timer->data);
}

static void gone(struct websocket *ws)
{
    if (ws->state != GONE) {
        ws->state = GONE;
        uv_poll_stop(&ws->poll);
        if (ws->finished) {
            close_now(ws);
        } else {
            ws->hooks.on_gone(ws->hooks.arg);
        }
    }
}

static void on_end(void *arg)
{
    gone(arg);
}

/* ---- what is watched ---- */

static size_t queued(const struct websocket *ws)
{
    return ws->out.used - ws->sent;
}

static bool wants_more(const struct websocket *ws)
{
    return ws->state != GONE && ws->used < sizeof ws->in && (!ws->paused || ws->finished);
}

static void watch(struct websocket *ws)
{
    bool read = wants_more(ws);
    if (ws->state != GONE && !ws->closed) {
        uv_poll_start(&ws->poll,
                      UV_DISCONNECT | (read ? UV_READABLE : 0) | (queued(ws) ? UV_WRITABLE : 0),
                      on_poll);
    }
}

/* ---- out ---- */

static void add(struct websocket *ws, enum websocket_opcode opcode, const char *prefix,
                size_t prefix_count, const char *bytes, size_t count)
{
    char head[WEBSOCKET_HEAD_BYTES_MAX];
    size_t head_count = websocket_head(opcode, prefix_count + count, head);
    if (queued(ws) + head_count + prefix_count + count > OUT_BYTES_MAX) {
        return; /* the client does not read its pongs */
    }
    buf_consume(&ws->out, ws->sent);
    ws->sent = 0;
    buf_add(&ws->out, head, head_count);
    buf_add(&ws->out, prefix, prefix_count);
    buf_add(&ws->out, bytes, count);
}

static void say_close(struct websocket *ws, enum websocket_code code)
{
    const char bytes[] = {(char)(code >> 8), (char)code};
    if (ws->state == OPEN) {
        ws->state = CLOSING;
        add(ws, WEBSOCKET_CLOSE, bytes, sizeof bytes, NULL, 0);
    }
}

static void flush(struct websocket *ws)
{
    while (queued(ws) > 0) {
        ssize_t n = http_socket_write(ws->socket, ws->out.data + ws->sent, queued(ws));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            if (errno != EAGAIN) {
                gone(ws);
            }
            return;
        }
        ws->sent += (size_t)n;
    }
    buf_consume(&ws->out, ws->sent);
    ws->sent = 0;
}

/* ---- in ---- */

static void take(struct websocket *ws, const struct websocket_piece *piece)
{
    if (piece->opcode == WEBSOCKET_CLOSE) {
        say_close(ws, WEBSOCKET_NORMAL);
        flush(ws);
        gone(ws);
    } else if (piece->opcode == WEBSOCKET_PING) {
        add(ws, WEBSOCKET_PONG, piece->bytes, piece->count, NULL, 0);
    } else if (piece->opcode != WEBSOCKET_PONG && ws->state == OPEN && !ws->finished) {
        ws->hooks.on_piece(ws->hooks.arg, piece);
    }
}

/* After websocket_finish no pieces are given any more, but the client's close frame is still
 * read. */
static void give_pieces(struct websocket *ws)
{
    size_t at = 0;
    long taken = 0;
    ws->reading = true;
    while (at < ws->used && ws->state != GONE && (!ws->paused || ws->finished)) {
        struct websocket_piece piece;
        taken = websocket_decode(&ws->decoder, ws->in + at, ws->used - at, &piece);
        if (taken <= 0) {
            break;
        }
        at += (size_t)taken;
        take(ws, &piece);
    }
    ws->reading = false;
    memmove(ws->in, ws->in + at, ws->used - at);
    ws->used -= at;
    if (taken < 0 && ws->state != GONE) {
        say_close(ws, WEBSOCKET_PROTOCOL_ERROR);
        flush(ws);
        gone(ws);
    }
}

static void read_client(struct websocket *ws)
{
    do {
        ssize_t n = http_socket_read(ws->socket, ws->in + ws->used, sizeof ws->in - ws->used);
        if (n > 0) {
            ws->used += (size_t)n;
            give_pieces(ws);
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            gone(ws);
        }
    } while (wants_more(ws) && http_socket_pending(ws->socket));
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct websocket *ws = poll->data;
    bool was_full = queued(ws) > 0;
    if (events & UV_WRITABLE) {
        flush(ws);
    }
    if (wants_more(ws) && (events & UV_READABLE)) {
        read_client(ws);
    } else if (ws->state != GONE && (status < 0 || (events & UV_DISCONNECT))) {
        gone(ws);
    }
    if (ws->state == OPEN && !ws->finished && was_full && queued(ws) == 0) {
        ws->hooks.on_room(ws->hooks.arg);
    }
    watch(ws);
}

/* ---- its owner's side ---- */

int websocket_open(uv_loop_t *loop, struct http_socket *socket, const struct websocket_hooks *hooks,
                   struct websocket **ret, struct muster_err *err)
{
    struct websocket *ws = calloc(1, sizeof *ws);
    if (!ws || uv_poll_init(loop, &ws->poll, http_socket_fd(socket)) != 0) {
        http_socket_close(socket);
        free(ws);
        return err_no_memory(err);
    }
    uv_timer_init(loop, &ws->limit);
    ws->poll.data = ws->limit.data = ws;
    ws->open_handles = 2;
    ws->socket = socket;
    ws->hooks = *hooks;
    buf_init(&ws->out, OUT_BYTES_MAX);
    http_socket_on_end(socket, on_end, ws);
    watch(ws);
    *ret = ws;
    return 0;
}

bool websocket_has_room(const struct websocket *ws)
{
    return queued(ws) < FULL_BYTES;
}

void websocket_send(struct websocket *ws, const char *prefix, size_t prefix_count,
                    const char *bytes, size_t count)
{
    assert(prefix_count + count <= WEBSOCKET_MESSAGE_BYTES_MAX && websocket_has_room(ws));
    if (ws->state == OPEN) {
        add(ws, WEBSOCKET_BINARY, prefix, prefix_count, bytes, count);
        watch(ws);
    }
}

void websocket_pause(struct websocket *ws)
{
    ws->paused = true;
}

void websocket_resume(struct websocket *ws)
{
    ws->paused = false;
    if (!ws->reading) {
        give_pieces(ws);
        if (wants_more(ws) && http_socket_pending(ws->socket)) {
            read_client(ws);
        }
        watch(ws);
    }
}

void websocket_finish(struct websocket *ws, enum websocket_code code)
{
    if (!ws) {
        return;
    }
    ws->finished = true;
    if (ws->state == GONE) {
        close_now(ws);
        return;
    }
    say_close(ws, code);
    uv_timer_start(&ws->limit, on_limit, CLOSING_MS, 0);
    watch(ws);
}
