/* See forward.h. */
#include "daemon/stream/forward.h"

#include "base/buf.h"
#include "base/err.h"
#include "daemon/stream/peer.h"
#include "process/wire/passing.h"

#include <stdlib.h>
#include <string.h>

enum { EARLY_BYTES_MAX = 2 * FORWARD_BYTES_MAX };

struct forward {
    uv_loop_t *loop;
    struct forward_hooks hooks;
    struct rank_port *dial; /* set until the connection is made */
    struct peer *peer;      /* set from then on */
    struct buf early;       /* bytes that wait for the connection */
    bool paused;
    bool finished;
};

static void on_peer_bytes(void *arg, const char *bytes, size_t count)
{
    const struct forward *forward = arg;
    forward->hooks.on_bytes(forward->hooks.arg, bytes, count);
}

static void on_peer_drained(void *arg)
{
    const struct forward *forward = arg;
    forward->hooks.on_drained(forward->hooks.arg);
}

static void on_peer_end(void *arg, const char *why)
{
    const struct forward *forward = arg;
    forward->hooks.on_end(forward->hooks.arg, why);
}

/* Passes on what the client did while there was no connection. */
static void catch_up(struct forward *forward)
{
    forward_pause(forward, forward->paused);
    if (forward->early.used > 0) {
        peer_write(forward->peer, "", 0, forward->early.data, forward->early.used);
    }
    buf_done(&forward->early);
    if (forward->finished) {
        peer_finish(forward->peer);
    }
}

static void on_dialled(void *arg, int fd, const char *why)
{
    struct forward *forward = arg;
    const struct peer_hooks hooks = {forward, on_peer_bytes, on_peer_drained, on_peer_end};
    struct muster_err err = MUSTER_ERR_INIT;
    forward->dial = NULL;
    if (fd < 0) {
        forward->hooks.on_end(forward->hooks.arg, why);
    } else if (buf_failed(&forward->early)) {
        passing_close(&fd, 1);
        forward->hooks.on_end(forward->hooks.arg, "too much was sent before it was connected");
    } else if (peer_open(forward->loop, fd, &hooks, &forward->peer, &err) < 0) {
        forward->hooks.on_end(forward->hooks.arg, err.text);
    } else {
        catch_up(forward);
    }
}

int forward_open(uv_loop_t *loop, const struct home *home, const json_t *pod, int port,
                 const struct forward_hooks *hooks, struct forward **ret, struct muster_err *err)
{
    struct forward *forward = calloc(1, sizeof *forward);
    if (!forward) {
        return err_no_memory(err);
    }
    const struct rank_port_hooks dialled = {forward, on_dialled};
    *forward = (struct forward){.loop = loop, .hooks = *hooks};
    buf_init(&forward->early, EARLY_BYTES_MAX);
    int r = rank_port_dial(loop, home, pod, port, &dialled, &forward->dial, err);
    if (r < 0) {
        free(forward);
        return r;
    }
    *ret = forward;
    return 0;
}

void forward_write(struct forward *forward, const char *bytes, size_t count)
{
    if (count > 0 && forward->peer) {
        peer_write(forward->peer, "", 0, bytes, count);
    } else if (count > 0 && forward->dial) {
        buf_add(&forward->early, bytes, count);
    }
}

size_t forward_queued(const struct forward *forward)
{
    return forward->peer ? peer_queued(forward->peer) : forward->early.used;
}

void forward_finish(struct forward *forward)
{
    if (forward->peer && !forward->finished) {
        peer_finish(forward->peer);
    }
    forward->finished = true;
}

void forward_pause(struct forward *forward, bool paused)
{
    forward->paused = paused;
    if (forward->peer && paused) {
        peer_pause(forward->peer);
    } else if (forward->peer) {
        peer_resume(forward->peer);
    }
}

void forward_close(struct forward *forward)
{
    if (forward) {
        rank_port_cancel(forward->dial);
        peer_close(forward->peer);
        buf_done(&forward->early);
        free(forward);
    }
}
