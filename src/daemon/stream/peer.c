/* See peer.h: libuv's streams, with one sum of what waits. */
#include "daemon/stream/peer.h"

#include "base/err.h"
#include "process/wire/passing.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { READ_BYTES = 32 << 10 };

enum state {
    OPENING,
    OPEN,
    ENDED, /* on_end was called */
    CLOSED,
};

struct peer {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
    };
    struct peer_hooks hooks;
    enum state state;
    bool paused;
    bool finishing;
    size_t queued;
    uv_shutdown_t shutdown;
    char bytes[READ_BYTES];
};

struct write {
    uv_write_t request;
    struct peer *peer;
    size_t count;
    char bytes[];
};

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void end(struct peer *peer, const char *why)
{
    if (peer->state < ENDED) {
        peer->state = ENDED;
        peer->hooks.on_end(peer->hooks.arg, why);
    }
}

/* ---- in ---- */

static void on_room_asked(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct peer *peer = handle->data;
    (void)suggested;
    *ret = uv_buf_init(peer->bytes, sizeof peer->bytes);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *bytes)
{
    struct peer *peer = stream->data;
    if (count > 0) {
        peer->hooks.on_bytes(peer->hooks.arg, bytes->base, (size_t)count);
    } else if (count < 0) {
        (void)uv_read_stop(stream);
        end(peer, count == UV_EOF || count == UV_ECONNRESET ? NULL : uv_strerror((int)count));
    }
}

static void read_on(struct peer *peer)
{
    if (peer->state == OPEN && !peer->paused) {
        (void)uv_read_start(&peer->stream, on_room_asked, on_read);
    }
}

void peer_pause(struct peer *peer)
{
    peer->paused = true;
    if (peer->state == OPEN) {
        (void)uv_read_stop(&peer->stream);
    }
}

void peer_resume(struct peer *peer)
{
    peer->paused = false;
    read_on(peer);
}

/* ---- out ---- */

size_t peer_queued(const struct peer *peer)
{
    return peer->queued;
}

/* Bytes that the other end does not read are lost; its end is noticed by reading. */
static void on_written(uv_write_t *request, int status)
{
    struct write *w = request->data;
    struct peer *peer = w->peer;
    peer->queued -= w->count;
    free(w);
    (void)status;
    if (peer->state < CLOSED && peer->queued == 0) {
        peer->hooks.on_drained(peer->hooks.arg);
    }
}

void peer_write(struct peer *peer, const char *prefix, size_t prefix_count, const char *bytes,
                size_t count)
{
    size_t all = prefix_count + count;
    struct write *w = peer->finishing ? NULL : malloc(sizeof *w + all);
    if (!w) {
        return;
    }
    *w = (struct write){.peer = peer, .count = all};
    w->request.data = w;
    memcpy(w->bytes, prefix, prefix_count);
    memcpy(w->bytes + prefix_count, bytes, count);
    const uv_buf_t part = uv_buf_init(w->bytes, (unsigned)all);
    if (uv_write(&w->request, &peer->stream, &part, 1, on_written) < 0) {
        free(w);
        return;
    }
    peer->queued += all;
}

void peer_finish(struct peer *peer)
{
    if (!peer->finishing) {
        (void)uv_shutdown(&peer->shutdown, &peer->stream, NULL);
    }
    peer->finishing = true;
}

/* ---- life ---- */

static struct peer *allocate(const struct peer_hooks *hooks)
{
    struct peer *peer = calloc(1, sizeof *peer);
    if (peer) {
        peer->hooks = *hooks;
    }
    return peer;
}

int peer_open(uv_loop_t *loop, int fd, const struct peer_hooks *hooks, struct peer **ret,
              struct muster_err *err)
{
    struct peer *peer = allocate(hooks);
    if (!peer) {
        passing_close(&fd, 1);
        return err_no_memory(err);
    }
    (void)uv_pipe_init(loop, &peer->pipe, 0);
    peer->handle.data = peer;
    int r = uv_pipe_open(&peer->pipe, fd);
    if (r < 0) {
        passing_close(&fd, 1);
        peer_close(peer);
        return muster_fail(err, MUSTER_EOS, "cannot watch a socket: %s", uv_strerror(r));
    }
    peer->state = OPEN;
    read_on(peer);
    *ret = peer;
    return 0;
}

void peer_close(struct peer *peer)
{
    if (peer) {
        peer->state = CLOSED;
        uv_close(&peer->handle, on_closed);
    }
}
