/* See connection.h. */
#include "coordinator/server/connection.h"

#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 << 10,
    READS_IN_TURN = 16, /* in one turn, before other connections are read */
    DRAIN_READS = 1024, /* from a dead member: more than its socket has room for */
};

/* ---- What is waited for ---- */

static void on_ready(uv_poll_t *poll, int status, int events);

/* Calls uv_poll_start only if something changes: it asks the kernel twice in any case. */
static void watch(struct server_connection *c)
{
    int events = UV_READABLE | (c->out.bytes > 0 ? UV_WRITABLE : 0);
    if (c->ended || events == c->watched) {
        return;
    }
    c->watched = events;
    if (uv_poll_start(&c->poll, events, on_ready) < 0) {
        server_connection_end(c);
    }
}

void server_connection_end(struct server_connection *c)
{
    if (!c->ended) {
        c->ended = true;
        uv_poll_stop(&c->poll);
        c->calls->ended(c->data, c);
    }
}

/* ---- Out ---- */

static void write_out(struct server_connection *c)
{
    if (c->ended || (c->calls->may_write && !c->calls->may_write(c->data))) {
        return;
    }
    if (server_queue_write(&c->out, c->fd) < 0) {
        c->is_deaf = true; /* the other end is closed; its last messages must still be read */
        server_queue_done(&c->out);
    } else if (c->out.bytes > SERVER_UNSENT_MAX) {
        server_connection_end(c);
    } else if (c->hangs_up && c->out.bytes == 0) {
        shutdown(c->fd, SHUT_WR); /* close() could drop data that the other end has not read yet */
    }
}

void server_connection_send(struct server_connection *c, struct server_frame *frame)
{
    if (c->ended || c->hangs_up || c->is_deaf) {
        return;
    }
    if (server_queue_add(&c->out, frame) < 0) {
        server_connection_end(c);
        return;
    }
    write_out(c);
    watch(c);
}

void server_connection_hang_up(struct server_connection *c, int64_t now_ms)
{
    if (!c->ended && !c->hangs_up) {
        c->hangs_up = true;
        c->since_ms = now_ms;
        write_out(c);
    }
}

/* ---- In ---- */

/* Returns how many bytes were whole frames. */
static size_t take_frames(struct server_connection *c, const uint8_t *bytes, size_t count)
{
    size_t at = 0;
    while (!c->ended && !c->hangs_up) {
        size_t most = c->incarnation ? WIRE_FRAME_MAX : WIRE_FIRST_MAX;
        int64_t length = wire_frame_bytes(bytes + at, count - at, most, NULL);
        if (length < 0) {
            server_connection_end(c);
        }
        if (length <= 0 || (size_t)length > count - at) {
            break;
        }
        c->calls->frame(c->data, c, bytes + at, (size_t)length);
        at += (size_t)length;
    }
    return at;
}

static void take_bytes(struct server_connection *c, const uint8_t *bytes, size_t count)
{
    if (c->in.used == 0) { /* as a rule nothing has to be copied */
        size_t taken = take_frames(c, bytes, count);
        buf_add(&c->in, bytes + taken, count - taken);
    } else {
        buf_add(&c->in, bytes, count);
        buf_consume(&c->in, take_frames(c, (const uint8_t *)c->in.data, c->in.used));
    }
    if (buf_failed(&c->in)) {
        server_connection_end(c);
    } else if (c->in.used == 0 && c->in.room > READ_BYTES) {
        buf_done(&c->in); /* large frames are rare: their memory is not kept */
        buf_init(&c->in, WIRE_FRAME_MAX + READ_BYTES);
    }
}

/* Reads once. Returns false if nothing more can be read now, or ever. */
static bool read_some(struct server_connection *c)
{
    static uint8_t bytes[READ_BYTES];
    size_t most = c->incarnation || c->hangs_up ? sizeof bytes : WIRE_FIRST_MAX - c->in.used;
    ssize_t count = c->ended ? -1 : recv(c->fd, bytes, most, MSG_DONTWAIT);
    if (c->ended || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))) {
        return false;
    }
    if (count < 0 && errno == EINTR) {
        return true;
    }
    if (count <= 0) {
        server_connection_end(c);
        return false;
    }
    if (!c->hangs_up) {
        take_bytes(c, bytes, (size_t)count);
    }
    return (size_t)count == most;
}

void server_connection_drain(struct server_connection *c)
{
    for (int i = 0; i < DRAIN_READS && read_some(c); i++) {
    }
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct server_connection *c = poll->data;
    if (status < 0) { /* it was closed there before all was read; its messages count */
        server_connection_drain(c);
        server_connection_end(c);
        return;
    }
    if (events & UV_WRITABLE) {
        write_out(c);
    }
    for (int i = 0; (events & UV_READABLE) && i < READS_IN_TURN && read_some(c); i++) {
    }
    watch(c);
}

/* ---- Memory ---- */

int server_connection_new(uv_loop_t *loop, int fd, int64_t now_ms,
                          const struct server_connection_calls *calls, void *data,
                          struct server_connection **ret, struct muster_err *err)
{
    struct server_connection *c = calloc(1, sizeof *c);
    int r = c ? uv_poll_init(loop, &c->poll, fd) : 0;
    if (!c || r < 0) {
        free(c);
        close(fd);
        return c ? muster_fail(err, MUSTER_EOS, "a connection cannot be watched: %s",
                               uv_strerror(r))
                 : err_no_memory(err);
    }
    c->poll.data = c;
    c->fd = fd;
    c->since_ms = now_ms;
    c->calls = calls;
    c->data = data;
    buf_init(&c->in, WIRE_FRAME_MAX + READ_BYTES);
    *ret = c;
    watch(c);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct server_connection *c = handle->data;
    close(c->fd);
    buf_done(&c->in);
    server_queue_done(&c->out);
    free(c);
}

void server_connection_free(struct server_connection *c)
{
    uv_close((uv_handle_t *)&c->poll, on_closed);
}
