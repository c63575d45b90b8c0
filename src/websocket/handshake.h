/* Makes a WebSocket of a request (RFC 6455 section 4.2).
 *
 * Layer: services. Ownership: nothing is kept.
 */
#pragma once

#include "http/http.h"

enum { WEBSOCKET_ACCEPT_BYTES = 29 }; /* with the NUL */

/* Whether the request's Upgrade header asks for `protocol` ("websocket"). */
bool websocket_is_asked(const struct http_request *request, const char *protocol);

/* Returns the first of `ours` (which ends with NULL) that the client offers; NULL if there is
 * none. */
const char *websocket_subprotocol(const struct http_request *request, const char *const *ours);

/* Adds the headers of the answer, with Sec-WebSocket-Protocol, and leaves HTTP with it
 * (http_reply_leave). Returns MUSTER_EINVAL, and leaves the reply as it was, if the request is not
 * for a WebSocket of version 13. */
int websocket_accept(const struct http_request *request, struct http_reply *reply,
                     const char *subprotocol, void (*take)(void *arg, struct http_socket *socket),
                     void *arg, struct muster_err *err);

/* Computes the value of Sec-WebSocket-Accept, which proves that the key was read. */
int websocket_accept_key(const char *key, char ret[WEBSOCKET_ACCEPT_BYTES]);
