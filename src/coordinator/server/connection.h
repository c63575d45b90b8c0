/* One connection to the coordinator: a stranger's, until it has shown the job's token, or a
 * member's. Frames in, frames out; a client that does not read what it is sent is cut off.
 *
 * Of a stranger WIRE_FIRST_MAX bytes are read, no more, and there must be one frame in them.
 *
 * Layer: program (coordinator). Memory: new/free; free returns before the loop has let go of it.
 * Thread: the loop's. No callback comes from within send, hang_up and end.
 */
#pragma once

#include "base/buf.h"
#include "coordinator/server/queue.h"
#include "wire/wire.h"

#include <stdbool.h>
#include <uv.h>

enum { SERVER_UNSENT_MAX = 32 << 20 }; /* bytes that wait for one member */

struct server_connection;

struct server_connection_calls {
    /* Called for each whole frame. */
    void (*frame)(void *data, struct server_connection *connection, const uint8_t *bytes,
                  size_t count);
    /* Called once, when the connection has ended or was ended. The callee frees it by free(), now
     * or later. */
    void (*ended)(void *data, struct server_connection *connection);
    /* Asked before anything is written; NULL: writing is allowed. While it returns false, all data
     * waits. */
    bool (*may_write)(void *data);
};

struct server_connection {
    uv_poll_t poll;
    int fd;
    int watched;          /* the events that the loop waits for: UV_READABLE … */
    int64_t since_ms;     /* when it was accepted, or was asked to hang up */
    uint64_t incarnation; /* 0: it is a stranger's */
    bool ended;
    bool is_deaf;  /* it cannot be written to any more */
    bool hangs_up; /* it ends once all is sent, and nothing more is read */
    struct buf in; /* the beginning of a frame */
    struct server_queue out;
    const struct server_connection_calls *calls;
    void *data;
    struct server_connection *previous, *next; /* the owner's list */
};

/* Makes a connection, which owns the descriptor, even if this fails. */
int server_connection_new(uv_loop_t *loop, int fd, int64_t now_ms,
                          const struct server_connection_calls *calls, void *data,
                          struct server_connection **ret, struct muster_err *err);
void server_connection_free(struct server_connection *connection);

void server_connection_send(struct server_connection *connection, struct server_frame *frame);
void server_connection_hang_up(struct server_connection *connection, int64_t now_ms);
void server_connection_end(struct server_connection *connection);
/* Reads all that has already arrived. */
void server_connection_drain(struct server_connection *connection);
