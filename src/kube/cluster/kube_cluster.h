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

/* All zero: upstream's defaults. */
struct kube_cluster_options {
    double qps;        /* total requests a second; 0: 20, < 0: no limit */
    int burst;         /* 0: 30 */
    int under_way_max; /* requests at once, each on a connection of its own; 0: 21, of which one
                          namespace has at most 16 (controller/fair_share.h) */
    uint64_t seed;     /* for the random lengths of pauses; 0: from the kernel */
    /* Called before anything is sent, also for watches and for reading their answers; NULL: always
     * allowed. A caller that returns false must end the program: nothing is done here after
     * that. */
    bool (*may_send)(void *arg);
    void *arg;
};

/* Takes the target over on success. It sends nothing: if no server is at the address, only the
 * first request fails. */
int kube_cluster_open(uv_loop_t *loop, struct target *target,
                      const struct kube_cluster_options *options, struct cluster **ret,
                      struct muster_err *err);

/* Number of answers so far, by method and HTTP status; 0: requests without an answer. */
struct kube_cluster_count {
    char method[8];
    int http_status;
    uint64_t count;
};

enum { KUBE_CLUSTER_COUNTS_MAX = 64, KUBE_CLUSTER_METHODS_MAX = 8 };

/* Borrowed. A watch is counted when it ends. */
const struct kube_cluster_count *kube_cluster_counts(const struct cluster *cluster, size_t *ret);

/* How long requests of a method took, each try separately, from sending to its end. Watches are not
 * included: they last as long as the server likes. */
struct kube_cluster_time {
    char method[8];
    struct histogram took;
};

/* Borrowed. */
const struct kube_cluster_time *kube_cluster_times(const struct cluster *cluster, size_t *ret);

/* Cancels all requests and watches; then the loop must run once more to close the handles. NULL is
 * allowed. */
void kube_cluster_close(struct cluster *cluster);
