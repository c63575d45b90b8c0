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
    void (*on_drained)(void *arg); /* all that was written is out */
    /* It sends no more; `why` is NULL, or what went wrong. */
    void (*on_end)(void *arg, const char *why);
};

/* Takes the descriptor, a Unix socket, also when it fails. */
int peer_open(uv_loop_t *loop, int fd, const struct peer_hooks *hooks, struct peer **ret,
              struct muster_err *err);
/* Copied; nothing limits what waits but callers that ask peer_queued. */
void peer_write(struct peer *peer, const char *prefix, size_t prefix_count, const char *bytes,
                size_t count);
size_t peer_queued(const struct peer *peer);
/* No more will be written: its end of the file, after what waits. */
void peer_finish(struct peer *peer);

/* Bytes do not come while it is paused. */
void peer_pause(struct peer *peer);
void peer_resume(struct peer *peer);

/* No hook is called from here on; what waits is lost. NULL is fine. */
void peer_close(struct peer *peer);
