/* GET …/pods/NAME/exec, attach and portforward: what goes on over a WebSocket.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: a stream owns itself, and ends with its
 * client, with what it is connected to, or with the server.
 */
#pragma once

#include "base/home.h"
#include "http/http.h"
#include "store/store.h"

struct streams {
    uv_loop_t *loop;
    const struct home *home;
    struct store *store;
    unsigned open; /* of STREAMS_MAX */
    bool closed;   /* nobody asks for more; the last stream frees it */
};

enum { STREAMS_MAX = 1024 };

int streams_new(uv_loop_t *loop, const struct home *home, struct store *store, struct streams **ret,
                struct muster_err *err);
/* Streams that are open end when the server does, a little later. NULL is fine. */
void streams_close(struct streams *streams);
/* A stream has begun, and is over: each calls both, once. */
void streams_add(struct streams *streams);
void streams_drop(struct streams *streams);

/* `what`: "exec", "attach" or "portforward". Completes the reply. */
void streams_handle(struct streams *streams, const char *what, const json_t *pod,
                    const struct http_request *request, struct http_reply *reply);

/* Each completes the reply, or returns an error. */
typedef int (*stream_opener)(struct streams *streams, const json_t *pod,
                             const struct http_request *request, struct http_reply *reply,
                             struct muster_err *err);
int stream_exec(struct streams *streams, const json_t *pod, const struct http_request *request,
                struct http_reply *reply, struct muster_err *err);
int stream_attach(struct streams *streams, const json_t *pod, const struct http_request *request,
                  struct http_reply *reply, struct muster_err *err);
int stream_port_forward(struct streams *streams, const json_t *pod,
                        const struct http_request *request, struct http_reply *reply,
                        struct muster_err *err);

/* The first of `protocols` that the client offers; NULL with an error. */
const char *stream_protocol(const struct http_request *request, const char *const *protocols,
                            struct muster_err *err);
