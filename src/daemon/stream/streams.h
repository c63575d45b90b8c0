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
    unsigned open; /* at most STREAMS_MAX */
    bool closed;   /* no new streams come; the last stream frees it */
};

enum { STREAMS_MAX = 1024 };

int streams_new(uv_loop_t *loop, const struct home *home, struct store *store, struct streams **ret,
                struct muster_err *err);
/* No new streams are opened after this. Open streams end with the server, a little later. `streams`
 * may be NULL. */
void streams_close(struct streams *streams);
/* Each stream calls streams_add when it begins and streams_drop when it is over. */
void streams_add(struct streams *streams);
void streams_drop(struct streams *streams);

/* Opens a stream. `what`: "exec", "attach" or "portforward". Completes the reply. */
void streams_handle(struct streams *streams, const char *what, const json_t *pod,
                    const struct http_request *request, struct http_reply *reply);

/* Each opener completes the reply, or returns an error. */
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

/* Returns the first of `protocols` that the client offers; NULL with an error if there is none. */
const char *stream_protocol(const struct http_request *request, const char *const *protocols,
                            struct muster_err *err);
