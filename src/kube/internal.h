/* What the files of kube/ share. Not for other folders. */
#pragma once

#include "base/home.h"
#include "kube/kube.h"

#include <curl/curl.h>

enum {
    KUBE_REPLY_BYTES_MAX = 256 << 20, /* a list of everything */
    KUBE_CONNECT_MS = 5000,
    KUBE_REQUEST_MS = 60000,
    KUBE_HURRIED_MS = 10000,
    KUBE_START_MS = 20000, /* until a fresh controller must answer */
    KUBE_RETRY_MS = 100,
};

struct kube {
    uv_loop_t *loop;
    enum kube_start start;
    struct home home;
    CURL *easy; /* for requests */
    CURLM *multi;
    uv_timer_t timer; /* curl's */
    struct kube_stream *streams;
    json_t *status;
    bool dry_run;
    bool hurried;
    const volatile sig_atomic_t *hurry_when; /* or NULL */
};

/* start.c: returns when a controller answers on the socket; starts one where kube->start says so.
 */
int kube_ensure(struct kube *kube, struct muster_err *err);

/* status.c: the error of a refused request; keeps a Status object for kube_status(). */
int kube_refuse(struct kube *kube, long http_status, const char *body, size_t bytes,
                struct muster_err *err);

/* stream.c */
int kube_multi_start(struct kube *kube, struct muster_err *err);
void kube_multi_stop(struct kube *kube);

/* request.c: what every transfer of ours has set; "http://muster<path>" over the socket. */
int kube_prepare(struct kube *kube, CURL *easy, const char *path, struct muster_err *err);
struct curl_slist *kube_headers(bool table, const char *content_type);
