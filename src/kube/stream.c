/* Answers that arrive in pieces, on the libuv loop. A refusal becomes an error. */
#include "kube/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/time/clock.h"
#include "kube/pace/retry.h"

#include <stdlib.h>
#include <utlist.h>

enum { REFUSAL_BYTES_MAX = 1 << 20 };

struct kube_stream {
    struct kube *kube;
    struct transfer *transfer;
    struct kube_stream_events events;
    struct buf refusal; /* the body of a refusal */
    struct kube_stream *prev, *next;
};

static void on_data(void *context, const char *bytes, size_t count)
{
    struct kube_stream *s = context;
    if (transfer_status(s->transfer) >= HTTP_REFUSED) {
        buf_add(&s->refusal, bytes, count);
    } else {
        s->events.data(s->events.context, bytes, count);
    }
}

static int outcome(struct kube_stream *s, const struct transfer_result *result,
                   struct muster_err *err)
{
    if (result->curl_code == CURLE_LOGIN_DENIED) {
        return muster_fail(err, MUSTER_EUNAUTH, "%s", result->problem);
    }
    if (result->curl_code != CURLE_OK) {
        return muster_fail(err, MUSTER_EUNAVAIL, "the connection to %s was lost: %s", s->kube->peer,
                           curl_easy_strerror((CURLcode)result->curl_code));
    }
    if (result->http_status == RETRY_UNAUTHORIZED) { /* the next connection uses another token */
        (void)kube_endpoint_token_refused(s->kube->endpoint, result->sent_ms, clock_ms());
    }
    if (result->http_status >= HTTP_REFUSED) {
        return kube_refuse(s->kube, result->http_status, buf_str(&s->refusal), s->refusal.used,
                           err);
    }
    return 0;
}

static void on_end(void *context, const struct transfer_result *result)
{
    struct kube_stream *s = context;
    struct muster_err err = MUSTER_ERR_INIT;
    int code = outcome(s, result, &err);
    struct kube_stream_events events = s->events;
    s->transfer = NULL; /* the transfer has freed itself */
    kube_stream_close(s);
    events.end(events.context, code, &err);
}

void kube_streams_close(struct kube *kube)
{
    while (kube->streams) {
        kube_stream_close(kube->streams);
    }
}

void kube_stream_close(struct kube_stream *stream)
{
    if (!stream) {
        return;
    }
    DL_DELETE(stream->kube->streams, stream);
    transfer_cancel(stream->transfer);
    buf_done(&stream->refusal);
    free(stream);
}

void kube_stream_pause(struct kube_stream *stream, bool pause)
{
    transfer_pause(stream->transfer, pause);
}

static int open_stream(struct kube *kube, const char *path, bool table,
                       const struct kube_stream_events *events, struct kube_stream **ret,
                       struct muster_err *err)
{
    struct kube_stream *s = calloc(1, sizeof *s);
    if (!s) {
        return err_no_memory(err);
    }
    *s = (struct kube_stream){.kube = kube, .events = *events};
    buf_init(&s->refusal, REFUSAL_BYTES_MAX);
    DL_APPEND(kube->streams, s);
    const struct transfer_order order = {
        .endpoint = kube->endpoint, .method = "GET", .path = path, .accept = kube_accept(table)};
    const struct transfer_events heard = {.data = on_data, .end = on_end, .context = s};
    int r = transport_start(kube->transport, &order, &heard, &s->transfer, err);
    if (r < 0) {
        kube_stream_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

int kube_stream_open_path(struct kube *kube, const char *path,
                          const struct kube_stream_events *events, struct kube_stream **ret,
                          struct muster_err *err)
{
    return open_stream(kube, path, false, events, ret, err);
}

int kube_stream_open(struct kube *kube, const struct kube_ref *ref, const struct kube_query *query,
                     const struct kube_stream_events *events, struct kube_stream **ret,
                     struct muster_err *err)
{
    muster_auto(free) char *path = kube_path(ref, query);
    if (!path) {
        return muster_fail(err, MUSTER_ETOOBIG, "the request's path is too long");
    }
    return open_stream(kube, path, query && query->table, events, ret, err);
}
