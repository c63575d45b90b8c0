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
    FORWARD_BYTES_MAX = 1 << 20, /* that wait for one rank, before what came last from a client */
};

struct forward_hooks {
    void *arg;
    void (*on_bytes)(void *arg, const char *bytes, size_t count);
    void (*on_drained)(void *arg); /* nothing waits any more */
    /* The rank sends no more; or `why` there is no connection. */
    void (*on_end)(void *arg, const char *why);
};

int forward_open(uv_loop_t *loop, const struct home *home, const json_t *pod, int port,
                 const struct forward_hooks *hooks, struct forward **ret, struct muster_err *err);
/* Copied. */
void forward_write(struct forward *forward, const char *bytes, size_t count);
size_t forward_queued(const struct forward *forward);
/* The client sends no more: the rank reads the end of the file, after what waits. */
void forward_finish(struct forward *forward);
/* Bytes do not come while it is paused. */
void forward_pause(struct forward *forward, bool paused);

/* NULL is fine. */
void forward_close(struct forward *forward);
