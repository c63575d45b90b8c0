/* kubectl port-forward, in the two ways that clients speak it over a WebSocket.
 *
 * Layer: program (daemon); private to the streams. Thread: the loop's.
 */
#pragma once

#include "daemon/stream/streams.h"

/* SPDY/3.1 inside the WebSocket: kubectl from version 1.31 on. */
#define PORT_FORWARD_TUNNEL "SPDY/3.1+portforward.k8s.io"
/* A pair of channels for each port: the Python client. */
#define PORT_FORWARD_CHANNELS "v4.channel.k8s.io"

/* Each function completes the reply, or returns an error. */
int port_forward_channels(struct streams *streams, const json_t *pod,
                          const struct http_request *request, struct http_reply *reply,
                          struct muster_err *err);
