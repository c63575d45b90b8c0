/* A Kubernetes API server as a struct cluster (controller/cluster.h), asynchronously, on the libuv
 * loop: requests in lanes under one budget, repeated where that is safe; watches that outlast cut
 * connections, restarts and forgotten versions.
 *
 * Layer: services, room kube/cluster. Thread: the loop's.
 */
#pragma once

#include "base/histogram.h"
#include "controller/cluster.h"
#include "kube/config/target.h"

#include <uv.h>

/* Zero: upstream's defaults. */
struct kube_cluster_options {
    double qps;        /* requests a second in all; 0: 20, < 0: no limit */
    int burst;         /* 0: 30 */
    int under_way_max; /* requests at once, each on a connection of its own; 0: 21, of which one
                          namespace has 16 at most (controller/fair_share.h) */
    uint64_t seed;     /* of the pauses; 0: from the kernel */
    /* Asked before anything is sent, watches and answers to them, too; NULL: it may. A caller that
     * says false ends the program: nothing goes on here. */
    bool (*may_send)(void *arg);
    void *arg;
};

/* Takes the target over when it succeeds. Nothing is asked yet: an address where nobody is shows
 * with the first request. */
int kube_cluster_open(uv_loop_t *loop, struct target *target,
                      const struct kube_cluster_options *options, struct cluster **ret,
                      struct muster_err *err);

/* Answers so far, by method and HTTP status; 0: none came. */
struct kube_cluster_count {
    char method[8];
    int http_status;
    uint64_t count;
};

enum { KUBE_CLUSTER_COUNTS_MAX = 64, KUBE_CLUSTER_METHODS_MAX = 8 };

/* Borrowed. Of a watch, when it ends. */
const struct kube_cluster_count *kube_cluster_counts(const struct cluster *cluster, size_t *ret);

/* How long requests of a method took, each try by itself, from when it was sent to its end. Watches
 * are not among them: they last as long as the server likes. */
struct kube_cluster_time {
    char method[8];
    struct histogram took;
};

/* Borrowed. */
const struct kube_cluster_time *kube_cluster_times(const struct cluster *cluster, size_t *ret);

/* Cancels all; the loop must run once more for the handles to go. NULL is fine. */
void kube_cluster_close(struct cluster *cluster);
