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

enum { WEBSOCKET_MESSAGE_BYTES_MAX = 65 << 10 }; /* of one that is sent */

struct websocket_hooks {
    void *arg;
    /* A piece of a message. While paused no other comes. */
    void (*on_piece)(void *arg, const struct websocket_piece *piece);
    /* All that was queued is sent. */
    void (*on_room)(void *arg);
    /* The client has closed, broke the protocol, or went: the last hook. finish is still to be
     * called. */
    void (*on_gone)(void *arg);
};

/* Takes the socket, also when it fails. */
int websocket_open(uv_loop_t *loop, struct http_socket *socket, const struct websocket_hooks *hooks,
                   struct websocket **ret, struct muster_err *err);

bool websocket_has_room(const struct websocket *ws);
/* A message of `prefix_count` bytes and then `count` bytes (may be 0), at most
 * WEBSOCKET_MESSAGE_BYTES_MAX; copied. */
void websocket_send(struct websocket *ws, const char *prefix, size_t prefix_count,
                    const char *bytes, size_t count);

void websocket_pause(struct websocket *ws);
/* Pieces may come from within this call. */
void websocket_resume(struct websocket *ws);

/* No hook is called from here on. What is queued is sent, and the closing handshake made, within a
 * limit; then it is freed. NULL is fine. */
void websocket_finish(struct websocket *ws, enum websocket_code code);
