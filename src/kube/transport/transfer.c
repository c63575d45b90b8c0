/* One transfer: it is set up, its bytes are collected and handed on, and its end is reported. */
#include "kube/transport/internal.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "base/time/clock.h"
#include "kube/pace/retry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { PENDING_BYTES_MAX = 64 << 20, MS_PER_S = 1000 };

void transfer_make_ready(struct transfer *transfer)
{
    if (!transfer->is_ready) {
        transfer->is_ready = true;
        DL_APPEND2(transfer->transport->ready, transfer, ready_prev, ready_next);
    }
}

/* CURLOPT_WRITEFUNCTION */
static size_t collect(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    buf_add(&transfer->pending, bytes, size * count);
    transfer_make_ready(transfer);
    return buf_failed(&transfer->pending) ? 0 : size * count;
}

/* CURLOPT_HEADERFUNCTION: an empty line ends the head. */
static size_t hear_head(char *line, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    if (size * count > 0 && (line[0] == '\r' || line[0] == '\n')) {
        transfer->head_came = true;
        transfer_make_ready(transfer);
    }
    return size * count;
}

/* CURLOPT_READFUNCTION. Each body asks may_send: curl may process many transfers in one call, and
 * the program may be stopped between them and continue when it may not send any more. There is no
 * function to rewind, on purpose: if a reused connection breaks after a request was sent, curl
 * would send the request again on another connection, and a write might happen twice. As curl
 * cannot rewind, it reports the failure instead. */
static size_t give_body(char *ret, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    if (!transport_may_send(transfer->transport)) {
        return CURL_READFUNC_ABORT;
    }
    size_t bytes = size * count < transfer->body_left ? size * count : transfer->body_left;
    memcpy(ret, transfer->body, bytes);
    transfer->body += bytes;
    transfer->body_left -= bytes;
    return bytes;
}

static void give_bytes(struct transfer *transfer)
{
    struct buf taken = transfer->pending;
    buf_init(&transfer->pending, PENDING_BYTES_MAX);
    transfer->events.data(transfer->events.context, taken.data, taken.used);
    buf_done(&taken);
}

static void give_end(struct transfer *transfer)
{
    long request_bytes = 0;
    struct transfer_events events = transfer->events;
    struct transfer_result result = {.curl_code = (int)transfer->curl_code,
                                     .retry_after_ms = transfer_retry_after_ms(transfer->easy),
                                     .sent_ms = transfer->sent_ms};
    char problem[CURL_ERROR_SIZE];
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &result.http_status);
    curl_easy_getinfo(transfer->easy, CURLINFO_REQUEST_SIZE, &request_bytes);
    result.was_sent = request_bytes > 0;
    result.timed_out = transfer->curl_code == CURLE_OPERATION_TIMEDOUT;
    snprintf(problem, sizeof problem, "%s",
             *transfer->problem ? transfer->problem : curl_easy_strerror(transfer->curl_code));
    result.problem = problem;
    transfer_cancel(transfer);
    events.end(events.context, &result);
}

void transfer_deliver(struct transfer *transfer)
{
    if (transfer->head_came) {
        transfer->head_came = false;
        if (transfer->pending.used > 0 || transfer->finished) {
            transfer_make_ready(transfer); /* for the rest, unless it is cancelled meanwhile */
        }
        transfer->events.head(transfer->events.context);
    } else if (transfer->pending.used > 0) {
        if (transfer->finished) {
            transfer_make_ready(transfer); /* for the end, unless it is cancelled meanwhile */
        }
        give_bytes(transfer);
    } else if (transfer->finished) {
        give_end(transfer);
    }
}

int64_t transfer_retry_after_ms(CURL *easy)
{
    struct curl_header *after = NULL;
    bool asked = curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER, -1, &after) == CURLHE_OK;
    return asked ? retry_after_ms(after->value) : -1;
}

int transfer_code(const struct transfer_result *result)
{
    return result->timed_out                         ? MUSTER_ETIMEDOUT
           : result->curl_code == CURLE_LOGIN_DENIED ? MUSTER_EUNAUTH
                                                     : MUSTER_EUNAVAIL;
}

long transfer_status(const struct transfer *transfer)
{
    long status = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

void transfer_cancel(struct transfer *transfer)
{
    if (!transfer) {
        return;
    }
    DL_DELETE(transfer->transport->transfers, transfer);
    if (transfer->is_ready) {
        DL_DELETE2(transfer->transport->ready, transfer, ready_prev, ready_next);
    }
    curl_multi_remove_handle(transfer->transport->multi, transfer->easy);
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    buf_done(&transfer->pending);
    free(transfer);
}

void transfer_pause(struct transfer *transfer, bool pause)
{
    if (transfer->paused != pause && !transfer->finished) {
        transfer->paused = pause;
        /* to continue, curl calls back through its timer */
        (void)curl_easy_pause(transfer->easy, pause ? CURLPAUSE_RECV : CURLPAUSE_CONT);
    }
}

static int add_header(struct transfer *transfer, const char *name, const char *value,
                      struct muster_err *err)
{
    muster_auto(free) char *line = NULL;
    if (asprintf(&line, "%s: %s", name, value) < 0) {
        line = NULL;
        return err_no_memory(err);
    }
    struct curl_slist *more = curl_slist_append(transfer->headers, line);
    transfer->headers = more ? more : transfer->headers;
    return more ? 0 : err_no_memory(err);
}

static int add_headers(struct transfer *transfer, const struct transfer_order *order,
                       struct muster_err *err)
{
    int r = add_header(transfer, "Accept", order->accept ? order->accept : "application/json", err);
    if (r == 0 && order->body) {
        const char *type = order->content_type ? order->content_type : "application/json";
        r = add_header(transfer, "Content-Type", type, err);
    }
    if (r == 0 && order->body) {
        struct curl_slist *more = curl_slist_append(transfer->headers, "Expect:");
        transfer->headers = more ? more : transfer->headers;
        r = more ? 0 : err_no_memory(err);
    }
    transfer->sent_ms = clock_ms();
    return r < 0 ? r
                 : kube_endpoint_authorize(order->endpoint, transfer->sent_ms, &transfer->headers,
                                           err);
}

static void set_body(struct transfer *transfer, const struct transfer_order *order)
{
    if (order->body) {
        transfer->body = order->body;
        transfer->body_left = order->body_bytes;
        curl_easy_setopt(transfer->easy, CURLOPT_POST, 1L);
        curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)order->body_bytes);
        curl_easy_setopt(transfer->easy, CURLOPT_READFUNCTION, give_body);
        curl_easy_setopt(transfer->easy, CURLOPT_READDATA, transfer);
    }
    curl_easy_setopt(transfer->easy, CURLOPT_CUSTOMREQUEST, order->method);
}

static int set_up(struct transfer *transfer, const struct transfer_order *order,
                  struct muster_err *err)
{
    CURL *easy = transfer->easy;
    int r = kube_endpoint_apply(order->endpoint, easy, order->path, err);
    r = r < 0 ? r : add_headers(transfer, order, err);
    if (r < 0) {
        return r;
    }
    set_body(transfer, order);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->problem);
    if (transfer->events.head) {
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, hear_head);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    }
    if (order->limit_ms > 0) {
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)order->limit_ms);
    }
    if (order->silence_ms > 0) {
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
                         (long)((order->silence_ms + MS_PER_S - 1) / MS_PER_S));
    }
    return 0;
}

/* There is no credential: the transfer ends like others, once the loop runs. Without a URL, curl
 * ends it as soon as it begins. */
static void fail_without_url(struct transfer *transfer, const struct muster_err *why)
{
    transfer->curl_code = CURLE_LOGIN_DENIED;
    text_copy(transfer->problem, sizeof transfer->problem, why->text);
    curl_easy_setopt(transfer->easy, CURLOPT_URL, NULL);
}

int transport_start(struct transport *transport, const struct transfer_order *order,
                    const struct transfer_events *events, struct transfer **ret,
                    struct muster_err *err)
{
    struct muster_err why = MUSTER_ERR_INIT;
    struct transfer *transfer = calloc(1, sizeof *transfer);
    CURL *easy = transfer ? curl_easy_init() : NULL;
    if (!easy) {
        free(transfer);
        return err_no_memory(err);
    }
    *transfer = (struct transfer){.transport = transport, .easy = easy, .events = *events};
    buf_init(&transfer->pending, PENDING_BYTES_MAX);
    DL_APPEND(transport->transfers, transfer);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    int r = set_up(transfer, order, &why);
    if (r == MUSTER_ENOMEM) {
        transfer_cancel(transfer);
        return err_no_memory(err);
    }
    if (r < 0) {
        fail_without_url(transfer, &why);
    }
    CURLMcode added = curl_multi_add_handle(transport->multi, easy);
    assert(added == CURLM_OK || added == CURLM_OUT_OF_MEMORY);
    if (added != CURLM_OK) {
        transfer_cancel(transfer);
        return err_no_memory(err);
    }
    *ret = transfer;
    return 0;
}
