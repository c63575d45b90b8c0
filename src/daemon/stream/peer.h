/* What a WebSocket is connected to: a byte stream to a rank's supervisor.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: open/close; a hook may close it, as its
 * last use of it.
 */
#pragma once

#include <muster/err.h>
#include <stddef.h>
#include <uv.h>

struct peer;

struct peer_hooks {
    void *arg;
    void (*on_bytes)(void *arg, const char *bytes, size_t count);
    void (*on_drained)(void *arg); /* everything that was written is sent */
    /* The other end sends no more; `why` is NULL, or what went wrong. */
    void (*on_end)(void *arg, const char *why);
};

/* Takes over the descriptor, a Unix socket, even if it fails. */
int peer_open(uv_loop_t *loop, int fd, const struct peer_hooks *hooks, struct peer **ret,
              struct muster_err *err);
/* Queues a copy. The queue has no limit: callers must check peer_queued. */
void peer_write(struct peer *peer, const char *prefix, size_t prefix_count, const char *bytes,
                size_t count);
size_t peer_queued(const struct peer *peer);
/* No more will be written: the other end reads the end of the file after the bytes that wait. */
void peer_finish(struct peer *peer);

/* While it is paused, on_bytes is not called. */
void peer_pause(struct peer *peer);
void peer_resume(struct peer *peer);

/* Closes it: no hook is called from now on, and bytes that wait are lost. `peer` may be NULL. */
void peer_close(struct peer *peer);
