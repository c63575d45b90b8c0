/* A WebSocket that has been accepted: pieces of messages in, whole messages out.
 *
 * It answers pings and the closing handshake by itself. What is queued is bounded: send only while
 * websocket_has_room. What it reads is bounded by its buffer: pause while a piece cannot go on.
 *
 * Layer: services. Thread: the loop's. Ownership: open/finish. A hook may finish it, as its last
 * use of it.
 */
#pragma once

#include "http/http.h"
#include "websocket/codec.h"

struct websocket;

enum { WEBSOCKET_MESSAGE_BYTES_MAX = 65 << 10 }; /* limit for a message that is sent */

struct websocket_hooks {
    void *arg;
    /* Gives a piece of a message. While the WebSocket is paused, no other piece is given. */
    void (*on_piece)(void *arg, const struct websocket_piece *piece);
    /* Everything that was queued is sent. */
    void (*on_room)(void *arg);
    /* The client has closed, has violated the protocol, or has left. No hook is called after this
     * one. websocket_finish must still be called. */
    void (*on_gone)(void *arg);
};

/* Takes over the socket, even if it fails. */
int websocket_open(uv_loop_t *loop, struct http_socket *socket, const struct websocket_hooks *hooks,
                   struct websocket **ret, struct muster_err *err);

bool websocket_has_room(const struct websocket *ws);
/* Sends a message of `prefix_count` bytes and then `count` bytes (may be 0), together at most
 * WEBSOCKET_MESSAGE_BYTES_MAX. The bytes are copied. */
void websocket_send(struct websocket *ws, const char *prefix, size_t prefix_count,
                    const char *bytes, size_t count);

void websocket_pause(struct websocket *ws);
/* resume may call on_piece before it returns. */
void websocket_resume(struct websocket *ws);

/* Ends the WebSocket: no hook is called from now on. What is queued is sent, and the closing
 * handshake is made, within a time limit; then `ws` is freed. `ws` may be NULL. */
void websocket_finish(struct websocket *ws, enum websocket_code code);
