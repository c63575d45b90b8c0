/* What the files of kube/ share. Not for other folders. */
#pragma once

#include "base/home.h"
#include "kube/kube.h"
#include "kube/transport/transport.h"

#include <curl/curl.h>

enum {
    KUBE_REPLY_BYTES_MAX = 256 << 20, /* a list of everything */
    KUBE_REQUEST_MS = 60000,
    KUBE_HURRIED_MS = 10000,
    KUBE_SLOW_MS = 5000,   /* after this time say_slow is called */
    KUBE_START_MS = 20000, /* within this time a new controller must answer */
    KUBE_RETRY_MS = 100,
    KUBE_LOOK_MS = 5000, /* between two calls of look */
    HTTP_REFUSED = 400,  /* this status and all higher ones */
};

struct kube {
    uv_loop_t *loop;
    bool is_cluster;
    enum kube_start start;
    struct home home; /* not used for a cluster */
    char *peer;       /* "the controller", or "the API server https://…" for a cluster */
    struct kube_endpoint *endpoint;
    struct transport *transport; /* for streams */
    CURL *easy;                  /* for requests */
    struct kube_stream *streams;
    json_t *status;
    bool dry_run;
    bool hurried;
    const volatile sig_atomic_t *hurry_when;                             /* or NULL */
    void (*say_slow)(const struct kube *kube, int waited_s);             /* or NULL */
    bool (*look)(const struct kube *kube, pid_t *controller, bool said); /* or NULL */
    pid_t controller;                                                    /* kept for look */
    bool said;                                                           /* kept for look */
};

/* start.c: Returns when a controller answers on the socket; starts one if kube->start says so. */
int kube_ensure(struct kube *kube, struct muster_err *err);

/* status.c: Makes the error of a refused request; keeps a Status object for kube_status(). */
int kube_refuse(struct kube *kube, long http_status, const char *body, size_t bytes,
                struct muster_err *err);

/* stream.c */
void kube_streams_close(struct kube *kube);

/* request.c: Returns the Accept header for a list. */
const char *kube_accept(bool table);
