/* What the files of kube/transport share. Not for other folders. */
#pragma once

#include "base/buf.h"
#include "kube/transport/transport.h"

struct transport {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer; /* for curl */
    struct transfer *transfers;
    struct transfer *ready;      /* those that have news for their owners */
    bool (*may_send)(void *arg); /* NULL: always */
    void *may_send_arg;
};

struct transfer {
    struct transport *transport;
    CURL *easy;
    struct curl_slist *headers;
    struct transfer_events events;
    const char *body; /* what remains to be sent */
    size_t body_left;
    struct buf pending; /* what has arrived, and was not given to its owner yet */
    bool finished, paused, is_ready;
    int64_t sent_ms;
    bool head_came;     /* and was not reported yet */
    CURLcode curl_code; /* set before the end if there is no credential */
    char problem[CURL_ERROR_SIZE];
    struct transfer *prev, *next;
    struct transfer *ready_prev, *ready_next;
};

static inline bool transport_may_send(const struct transport *t)
{
    return !t->may_send || t->may_send(t->may_send_arg);
}

void transfer_make_ready(struct transfer *transfer);

/* Calls the transfer's owner; frees the transfer if that was the end. */
void transfer_deliver(struct transfer *transfer);
