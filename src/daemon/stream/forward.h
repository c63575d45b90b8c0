/* One connection of kubectl port-forward: what a client writes goes to a port of a rank, and back.
 *
 * What the client writes before the connection is made waits. The caller stops reading from the
 * client while forward_queued says that much waits.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: open/close; a hook may close it, as its
 * last use of it.
 */
#pragma once

#include "daemon/stream/rank_port.h"

#include <stdbool.h>
#include <stddef.h>

struct forward;

enum {
    FORWARD_BYTES_MAX = 1 << 20, /* bytes that wait for one rank, without a client's last piece */
};

struct forward_hooks {
    void *arg;
    void (*on_bytes)(void *arg, const char *bytes, size_t count);
    void (*on_drained)(void *arg); /* no bytes wait any more */
    /* The rank sends no more; or there is no connection, and `why` says the reason. */
    void (*on_end)(void *arg, const char *why);
};

int forward_open(uv_loop_t *loop, const struct home *home, const json_t *pod, int port,
                 const struct forward_hooks *hooks, struct forward **ret, struct muster_err *err);
/* Queues a copy of the bytes. */
void forward_write(struct forward *forward, const char *bytes, size_t count);
size_t forward_queued(const struct forward *forward);
/* The client sends no more: the rank reads the end of the file after the bytes that wait. */
void forward_finish(struct forward *forward);
/* While it is paused, on_bytes is not called. */
void forward_pause(struct forward *forward, bool paused);

/* `forward` may be NULL. */
void forward_close(struct forward *forward);
