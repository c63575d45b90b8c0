/* curl's multi interface on the libuv loop. See transport/transport.h. */
#include "kube/transport/internal.h"

#include "base/err.h"

#include <stdlib.h>
#include <utlist.h>

/* One for each socket that curl uses. */
struct socket_poll {
    uv_poll_t poll;
    struct transport *transport;
    curl_socket_t fd;
};

static void advance(struct transport *t, curl_socket_t fd, int events);

static void free_poll(uv_handle_t *handle)
{
    free(handle->data);
}

static void readable(uv_poll_t *poll, int status, int events)
{
    struct socket_poll *s = poll->data;
    int bits = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
               (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);
    advance(s->transport, s->fd, status < 0 ? CURL_CSELECT_ERR : bits);
}

static struct socket_poll *new_poll(struct transport *t, curl_socket_t fd)
{
    struct socket_poll *s = calloc(1, sizeof *s);
    if (!s || uv_poll_init_socket(t->loop, &s->poll, fd) < 0) {
        free(s);
        return NULL;
    }
    s->poll.data = s;
    s->transport = t;
    s->fd = fd;
    curl_multi_assign(t->multi, fd, s);
    return s;
}

/* CURLMOPT_SOCKETFUNCTION */
static int want_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *assigned)
{
    (void)easy;
    struct transport *t = context;
    struct socket_poll *s = assigned;
    if (what == CURL_POLL_REMOVE) {
        if (s) {
            curl_multi_assign(t->multi, fd, NULL);
            uv_close((uv_handle_t *)&s->poll, free_poll);
        }
        return 0;
    }
    s = s ? s : new_poll(t, fd);
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
    struct transport *t = context;
    if (timeout_ms < 0) {
        return uv_timer_stop(&t->timer);
    }
    return uv_timer_start(&t->timer, timed_out, (uint64_t)timeout_ms, 0);
}

static void note_finished(struct transport *t)
{
    int left = 0;
    for (CURLMsg *message; (message = curl_multi_info_read(t->multi, &left));) {
        struct transfer *transfer = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        transfer->finished = true;
        transfer->curl_code = transfer->curl_code ? transfer->curl_code : message->data.result;
        transfer_make_ready(transfer);
    }
}

/* Delivers to the owners. A callback can start or cancel transfers, and so change the list of those
 * that are ready; therefore each turn takes the first one. */
static void deliver(struct transport *t)
{
    while (t->ready) {
        struct transfer *transfer = t->ready;
        DL_DELETE2(t->ready, transfer, ready_prev, ready_next);
        transfer->is_ready = false;
        transfer_deliver(transfer);
    }
}

static void advance(struct transport *t, curl_socket_t fd, int events)
{
    int running = 0;
    if (!transport_may_send(t)) {
        return;
    }
    curl_multi_socket_action(t->multi, fd, events, &running);
    note_finished(t);
    deliver(t);
}

static void freed(uv_handle_t *handle)
{
    free(handle->data);
    curl_global_cleanup();
}

int transport_open(uv_loop_t *loop, struct transport **ret, struct muster_err *err)
{
    struct transport *t = calloc(1, sizeof *t);
    if (!t || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(t);
        return err_no_memory(err);
    }
    t->loop = loop;
    uv_timer_init(loop, &t->timer);
    t->timer.data = t;
    t->multi = curl_multi_init();
    if (!t->multi) {
        transport_close(t);
        return err_no_memory(err);
    }
    curl_multi_setopt(t->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl_multi_setopt(t->multi, CURLMOPT_SOCKETDATA, t);
    curl_multi_setopt(t->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    curl_multi_setopt(t->multi, CURLMOPT_TIMERDATA, t);
    *ret = t;
    return 0;
}

void transport_ask_before(struct transport *t, bool (*may_send)(void *arg), void *arg)
{
    t->may_send = may_send;
    t->may_send_arg = arg;
}

void transport_close(struct transport *transport)
{
    if (!transport) {
        return;
    }
    while (transport->transfers) {
        transfer_cancel(transport->transfers);
    }
    curl_multi_cleanup(transport->multi);
    uv_close((uv_handle_t *)&transport->timer, freed);
}
