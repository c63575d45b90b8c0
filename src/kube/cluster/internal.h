/* What the files of kube/cluster share. Not for other folders. */
#pragma once

#include "base/buf.h"
#include "kube/cluster/kube_cluster.h"
#include "kube/pace/queue.h"
#include "kube/pace/retry.h"
#include "kube/transport/transport.h"

struct kube_cluster {
    struct cluster base; /* must be the first member */
    struct transport *transport;
    struct kube_endpoint *endpoint;
    struct pace queue;
    struct retry_chance chance;
    uv_timer_t tick; /* when to look at the queue */
    struct cluster_call *calls;
    struct cluster_watch *watches;
    struct kube_cluster_count counts[KUBE_CLUSTER_COUNTS_MAX];
    size_t count_count;
    struct kube_cluster_time times[KUBE_CLUSTER_METHODS_MAX];
    size_t time_count;
};

/* An entry of the queue: a call, or a watch's next request. */
struct turn {
    struct pace_item item;            /* must be the first member */
    void (*start)(struct turn *turn); /* its turn has come; must not call an owner's callback */
    void (*late)(struct turn *turn);  /* its deadline is over; it was taken out of the queue */
};

int64_t kube_cluster_now_ms(void);

/* Counts a request that was answered, or has ended without an answer. */
void kube_cluster_count(struct kube_cluster *k, const char *method,
                        const struct transfer_result *result);
/* Records the time of a request that was sent at since_ms and has ended; not for watches. */
void kube_cluster_took(struct kube_cluster *k, const char *method, int64_t since_ms);

/* Starts the requests that may be started; makes no callbacks. Called after each change of the
 * queue. */
void kube_cluster_pump(struct kube_cluster *k);

/* call.c */
int call_send(struct cluster *cluster, const struct cluster_request *request, cluster_done_fn *done,
              void *arg, struct cluster_call **ret, struct muster_err *err);
void call_cancel(struct cluster_call *call);

/* watch.c */
int watch_open(struct cluster *cluster, const struct cluster_scope *scope, cluster_watch_fn *fn,
               void *arg, struct cluster_watch **ret, struct muster_err *err);
void watch_close(struct cluster_watch *watch);
