/* See streams.h. */
#include "daemon/stream/streams.h"

#include "api/api.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/stream/rank_command.h"
#include "websocket/handshake.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int streams_new(uv_loop_t *loop, const struct home *home, struct store *store, struct streams **ret,
                struct muster_err *err)
{
    struct streams *streams = calloc(1, sizeof *streams);
    if (!streams) {
        return err_no_memory(err);
    }
    *streams = (struct streams){.loop = loop, .home = home, .store = store};
    *ret = streams;
    return 0;
}

static void free_if_done(struct streams *streams)
{
    if (streams->closed && streams->open == 0) {
        free(streams);
    }
}

void streams_close(struct streams *streams)
{
    if (streams) {
        streams->closed = true;
        free_if_done(streams);
    }
}

void streams_add(struct streams *streams)
{
    streams->open++;
}

void streams_drop(struct streams *streams)
{
    assert(streams->open > 0);
    streams->open--;
    free_if_done(streams);
}

const char *stream_protocol(const struct http_request *request, const char *const *protocols,
                            struct muster_err *err)
{
    const char *protocol = websocket_subprotocol(request, protocols);
    if (!protocol) {
        (void)muster_fail(err, MUSTER_EINVAL,
                          "none of the client's Sec-WebSocket-Protocol is spoken here: %s is",
                          protocols[0]);
    }
    return protocol;
}

static int open_stream(struct streams *streams, const char *what, const json_t *pod,
                       const struct http_request *request, struct http_reply *reply,
                       struct muster_err *err)
{
    static const struct {
        const char *name;
        stream_opener open;
    } openers[] = {
        {"exec", stream_exec}, {"attach", stream_attach}, {"portforward", stream_port_forward}};
    /* The container is checked first: kubectl tries again without a WebSocket when a WebSocket is
     * refused, and prints the second error. */
    const char *container = http_query(request, "container");
    int r = rank_check_container(
        pod, container && *container ? container : doc_text(pod, "spec.containers.0.name", ""),
        err);
    if (r < 0) {
        return r;
    }
    if (!websocket_is_asked(request, "websocket")) {
        return muster_fail(err, MUSTER_EINVAL,
                           "%s is spoken over a WebSocket here, and this request asks for none: "
                           "kubectl does from version 1.31 on",
                           what);
    }
    if (streams->open >= STREAMS_MAX) {
        return muster_fail(err, MUSTER_EAGAIN, "too many streams: the limit is %d", STREAMS_MAX);
    }
    for (size_t i = 0; i < sizeof openers / sizeof openers[0]; i++) {
        if (strcmp(openers[i].name, what) == 0) {
            return openers[i].open(streams, pod, request, reply, err);
        }
    }
    return muster_fail(err, MUSTER_ENOENT, "pods have no %s", what);
}

void streams_handle(struct streams *streams, const char *what, const json_t *pod,
                    const struct http_request *request, struct http_reply *reply)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (open_stream(streams, what, pod, request, reply, &err) < 0) {
        api_send_error(reply, &err);
    }
}
