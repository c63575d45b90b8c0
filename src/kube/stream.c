/* Answers that come bit by bit, on the libuv loop: curl's multi interface over uv_poll.
 *
 * curl may not be called from its own callbacks, so those only collect; what came is handed to the
 * owners after curl has returned (deliver), where they may open and close whatever they like.
 */
#include "kube/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

enum { PENDING_BYTES_MAX = 16 << 20 };

struct kube_stream {
    struct kube *kube;
    CURL *easy;
    struct curl_slist *headers;
    struct kube_stream_events events;
    struct buf pending;
    bool finished;
    bool paused;
    CURLcode result;
    struct kube_stream *prev, *next;
};

/* One per socket that curl uses. */
struct socket_poll {
    uv_poll_t poll;
    struct kube *kube;
    curl_socket_t fd;
};

static void advance(struct kube *kube, curl_socket_t fd, int events);

static void free_poll(uv_handle_t *handle)
{
    free(handle->data);
}

static void readable(uv_poll_t *poll, int status, int events)
{
    struct socket_poll *s = poll->data;
    int bits = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
               (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);
    advance(s->kube, s->fd, status < 0 ? CURL_CSELECT_ERR : bits);
}

static struct socket_poll *new_poll(struct kube *kube, curl_socket_t fd)
{
    struct socket_poll *s = calloc(1, sizeof *s);
    if (!s || uv_poll_init_socket(kube->loop, &s->poll, fd) < 0) {
        free(s);
        return NULL;
    }
    s->poll.data = s;
    s->kube = kube;
    s->fd = fd;
    curl_multi_assign(kube->multi, fd, s);
    return s;
}

/* CURLMOPT_SOCKETFUNCTION */
static int want_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *assigned)
{
    (void)easy;
    struct kube *kube = context;
    struct socket_poll *s = assigned;
    if (what == CURL_POLL_REMOVE) {
        if (s) {
            curl_multi_assign(kube->multi, fd, NULL);
            uv_close((uv_handle_t *)&s->poll, free_poll);
        }
        return 0;
    }
    s = s ? s : new_poll(kube, fd);
    if (!s) {
        return -1;
    }
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    return uv_poll_start(&s->poll, events, readable);
}

static void timed_out(uv_timer_t *timer)
{
    advance(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

/* CURLMOPT_TIMERFUNCTION */
static int want_timer(CURLM *multi, long timeout_ms, void *context)
{
    (void)multi;
    struct kube *kube = context;
    if (timeout_ms < 0) {
        return uv_timer_stop(&kube->timer);
    }
    return uv_timer_start(&kube->timer, timed_out, (uint64_t)timeout_ms, 0);
}

/* CURLOPT_WRITEFUNCTION */
static size_t collect(char *bytes, size_t size, size_t count, void *context)
{
    struct kube_stream *s = context;
    buf_add(&s->pending, bytes, size * count);
    return buf_failed(&s->pending) ? 0 : size * count;
}

static void note_finished(struct kube *kube)
{
    int left = 0;
    for (CURLMsg *m; (m = curl_multi_info_read(kube->multi, &left));) {
        struct kube_stream *s = NULL;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &s);
        assert(s);
        s->finished = true;
        s->result = m->data.result;
    }
}

static long http_status(const struct kube_stream *s)
{
    long status = 0;
    curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static int outcome(struct kube_stream *s, struct muster_err *err)
{
    if (s->result != CURLE_OK) {
        return muster_fail(err, MUSTER_EUNAVAIL, "the connection to the controller was lost: %s",
                           curl_easy_strerror(s->result));
    }
    if (http_status(s) >= 400) {
        return kube_refuse(s->kube, http_status(s), buf_str(&s->pending), s->pending.used, err);
    }
    return 0;
}

/* The bytes leave the stream before its owner sees them: it may close the stream. */
static void give_bytes(struct kube_stream *s)
{
    struct buf taken = s->pending;
    buf_init(&s->pending, PENDING_BYTES_MAX);
    s->events.data(s->events.context, taken.data, taken.used);
    buf_done(&taken);
}

static void give_end(struct kube_stream *s)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int code = outcome(s, &err);
    struct kube_stream_events events = s->events;
    kube_stream_close(s);
    events.end(events.context, code, &err);
}

static void deliver(struct kube *kube)
{
    for (bool again = true; again;) {
        again = false;
        struct kube_stream *s;
        DL_FOREACH (kube->streams, s) {
            bool refused = http_status(s) >= 400;
            if (s->pending.used > 0 && !refused) {
                give_bytes(s);
                again = true;
                break; /* the list may have changed */
            }
            if (s->finished) {
                give_end(s);
                again = true;
                break;
            }
        }
    }
}

static void advance(struct kube *kube, curl_socket_t fd, int events)
{
    int running = 0;
    curl_multi_socket_action(kube->multi, fd, events, &running);
    note_finished(kube);
    deliver(kube);
}

int kube_multi_start(struct kube *kube, struct muster_err *err)
{
    kube->multi = curl_multi_init();
    if (!kube->multi) {
        return err_no_memory(err);
    }
    curl_multi_setopt(kube->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl_multi_setopt(kube->multi, CURLMOPT_SOCKETDATA, kube);
    curl_multi_setopt(kube->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    curl_multi_setopt(kube->multi, CURLMOPT_TIMERDATA, kube);
    return 0;
}

void kube_multi_stop(struct kube *kube)
{
    while (kube->streams) {
        kube_stream_close(kube->streams);
    }
    curl_multi_cleanup(kube->multi);
    kube->multi = NULL;
}

void kube_stream_close(struct kube_stream *stream)
{
    if (!stream) {
        return;
    }
    DL_DELETE(stream->kube->streams, stream);
    curl_multi_remove_handle(stream->kube->multi, stream->easy);
    curl_easy_cleanup(stream->easy);
    curl_slist_free_all(stream->headers);
    buf_done(&stream->pending);
    free(stream);
}

void kube_stream_pause(struct kube_stream *stream, bool pause)
{
    if (stream->paused != pause && !stream->finished) {
        stream->paused = pause;
        /* going on, curl calls itself back by its timer */
        (void)curl_easy_pause(stream->easy, pause ? CURLPAUSE_RECV : CURLPAUSE_CONT);
    }
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
    s->easy = curl_easy_init();
    s->headers = kube_headers(table, NULL);
    buf_init(&s->pending, PENDING_BYTES_MAX);
    DL_APPEND(kube->streams, s);
    int r = s->easy && s->headers ? kube_prepare(kube, s->easy, path, err) : err_no_memory(err);
    if (r < 0) {
        kube_stream_close(s);
        return r;
    }
    curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(s->easy, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(s->easy, CURLOPT_PRIVATE, s);
    curl_multi_add_handle(kube->multi, s->easy);
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
