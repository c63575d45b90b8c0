/* HTTP transfers on the libuv loop: curl's multi interface over uv_poll. Nothing here blocks.
 *
 * curl may not be called from its own callbacks, so those only collect; what came is handed to the
 * owners after curl has returned, where they may start and cancel whatever they like.
 *
 * Layer: services, room kube/transport. Thread: the loop's. Ownership: open/close; a transfer frees
 * itself after `end`, or is cancelled.
 */
#pragma once

#include "kube/transport/endpoint.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct transport;
struct transfer;

/* Borrowed; `body` must stay until the end. */
struct transfer_order {
    struct kube_endpoint *endpoint;
    const char *method;       /* "GET" */
    const char *path;         /* "/api/v1/pods?limit=500" */
    const char *accept;       /* NULL: application/json */
    const char *content_type; /* of the body */
    const char *body;         /* NULL: none */
    size_t body_bytes;
    int64_t limit_ms;   /* of the whole transfer; 0: none */
    int64_t silence_ms; /* without a byte for so long it is broken; 0: it may be silent */
};

struct transfer_result {
    int curl_code;          /* CURLE_OK: a whole answer; CURLE_LOGIN_DENIED: no credential */
    long http_status;       /* 0: none came */
    int64_t retry_after_ms; /* < 0: not asked for */
    int64_t sent_ms;        /* when it was told who we are; of clock_ms() */
    bool was_sent;          /* false: nothing of the request has left this machine */
    bool timed_out;
    const char *problem; /* what curl says about it, or why there is no credential */
};

/* Our code for an end without a whole answer. */
int transfer_code(const struct transfer_result *result);

/* What the answer that a handle has asks for; < 0: nothing. */
int64_t transfer_retry_after_ms(CURL *easy);

/* `data` comes for every answer, refusals too; `result` tells then which it is. */
struct transfer_events {
    void (*data)(void *context, const char *bytes, size_t count);
    void (*end)(void *context, const struct transfer_result *result);
    void *context;
    void (*head)(void *context); /* an answer has begun, before `data`; NULL: it is not told */
};

/* The loop must run once more after transport_close, for the handles to go. */
int transport_open(uv_loop_t *loop, struct transport **ret, struct muster_err *err);
/* Asked before anything is sent, a request's head and its body each: false, and nothing is sent any
 * more, nor is anything read. A head without its body, which a server refuses, may have gone
 * before. The hook then ends the program, but not from within: curl waits. */
void transport_ask_before(struct transport *transport, bool (*may_send)(void *arg), void *arg);
/* Cancels every transfer. NULL is fine. */
void transport_close(struct transport *transport);

/* No callback comes from within it. MUSTER_ENOMEM; all else, a plugin without credentials, too, is
 * reported as the transfer's end. */
int transport_start(struct transport *transport, const struct transfer_order *order,
                    const struct transfer_events *events, struct transfer **ret,
                    struct muster_err *err);
/* No callback comes after it; NULL is fine. */
void transfer_cancel(struct transfer *transfer);

/* Paused, it reads no more from its connection; what has come already is still given to `data`. */
void transfer_pause(struct transfer *transfer, bool pause);

/* The status of the answer that is coming; 0: none yet. */
long transfer_status(const struct transfer *transfer);
