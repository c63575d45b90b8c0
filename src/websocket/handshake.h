/* Makes a WebSocket of a request (RFC 6455 section 4.2).
 *
 * Layer: services. Ownership: nothing is kept.
 */
#pragma once

#include "http/http.h"

enum { WEBSOCKET_ACCEPT_BYTES = 29 }; /* the NUL included */

/* True when the request's Upgrade asks for `protocol` ("websocket"). */
bool websocket_is_asked(const struct http_request *request, const char *protocol);

/* The first of `ours` (ends with NULL) that the client offers; NULL: none. */
const char *websocket_subprotocol(const struct http_request *request, const char *const *ours);

/* Adds the headers of the answer, Sec-WebSocket-Protocol among them, and leaves HTTP with it
 * (http_reply_leave). MUSTER_EINVAL: that is no WebSocket of version 13; the reply is as it was. */
int websocket_accept(const struct http_request *request, struct http_reply *reply,
                     const char *subprotocol, void (*take)(void *arg, struct http_socket *socket),
                     void *arg, struct muster_err *err);

/* The value of Sec-WebSocket-Accept, which proves that the key was read. */
int websocket_accept_key(const char *key, char ret[WEBSOCKET_ACCEPT_BYTES]);
