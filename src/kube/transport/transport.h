/* HTTP transfers on the libuv loop: curl's multi interface over uv_poll. Nothing here blocks.
 *
 * curl may not be called from its own callbacks, so these only collect data; it is handed to the
 * owners after curl has returned, when they may start and cancel any transfer.
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

/* Borrowed; `body` must remain until the end. */
struct transfer_order {
    struct kube_endpoint *endpoint;
    const char *method;       /* "GET" */
    const char *path;         /* "/api/v1/pods?limit=500" */
    const char *accept;       /* NULL: application/json */
    const char *content_type; /* of the body */
    const char *body;         /* NULL: none */
    size_t body_bytes;
    int64_t limit_ms;   /* for the whole transfer; 0: none */
    int64_t silence_ms; /* the connection is broken after this time without a byte; 0: no limit */
};

struct transfer_result {
    int curl_code;          /* CURLE_OK: a complete answer; CURLE_LOGIN_DENIED: no credential */
    long http_status;       /* 0: no answer */
    int64_t retry_after_ms; /* < 0: the server named no time */
    int64_t sent_ms;        /* when it was authorized; by clock_ms() */
    bool was_sent;          /* false: no part of the request has left this machine */
    bool timed_out;
    const char *problem; /* curl's message, or why there is no credential */
};

/* Returns our code for an end without a complete answer. */
int transfer_code(const struct transfer_result *result);

/* Returns the pause that the handle's answer asks for; < 0: none. */
int64_t transfer_retry_after_ms(CURL *easy);

/* `data` is called for every answer, also for refusals; `result` then says which it is. */
struct transfer_events {
    void (*data)(void *context, const char *bytes, size_t count);
    void (*end)(void *context, const struct transfer_result *result);
    void *context;
    void (*head)(void *context); /* an answer has begun; comes before `data`; may be NULL */
};

/* After transport_close the loop must run once more, to close the handles. */
int transport_open(uv_loop_t *loop, struct transport **ret, struct muster_err *err);
/* Sets a hook that is called before anything is sent, for a request's head and body each. If it
 * returns false, nothing is sent and nothing is read any more. A head without its body, which a
 * server refuses, may have been sent before. The hook must end the program, but not from within,
 * because it runs inside curl. */
void transport_ask_before(struct transport *transport, bool (*may_send)(void *arg), void *arg);
/* Cancels every transfer. NULL is allowed. */
void transport_close(struct transport *transport);

/* Starts a transfer; makes no callback from within. Returns MUSTER_ENOMEM; every other failure,
 * also of a plugin without credentials, is reported as the transfer's end. */
int transport_start(struct transport *transport, const struct transfer_order *order,
                    const struct transfer_events *events, struct transfer **ret,
                    struct muster_err *err);
/* No callback comes after this; NULL is allowed. */
void transfer_cancel(struct transfer *transfer);

/* A paused transfer does not read from its connection; `data` still gets what has arrived
 * already. */
void transfer_pause(struct transfer *transfer, bool pause);

/* Returns the status of the answer that is arriving; 0: none yet. */
long transfer_status(const struct transfer *transfer);
