/* What the files of kube/cluster share. Not for other folders. */
#pragma once

#include "base/buf.h"
#include "kube/cluster/kube_cluster.h"
#include "kube/pace/queue.h"
#include "kube/pace/retry.h"
#include "kube/transport/transport.h"

struct kube_cluster {
    struct cluster base; /* first */
    struct transport *transport;
    struct kube_endpoint *endpoint;
    struct pace queue;
    struct retry_chance chance;
    uv_timer_t tick; /* when the queue wants to be looked at */
    struct cluster_call *calls;
    struct cluster_watch *watches;
    struct kube_cluster_count counts[KUBE_CLUSTER_COUNTS_MAX];
    size_t count_count;
    struct kube_cluster_time times[KUBE_CLUSTER_METHODS_MAX];
    size_t time_count;
};

/* Something that is in the queue: a call, or a watch's next request. */
struct turn {
    struct pace_item item;            /* first */
    void (*start)(struct turn *turn); /* its turn has come; no callback of an owner's from within */
    void (*late)(struct turn *turn);  /* its deadline is over; it is out of the queue */
};

int64_t kube_cluster_now_ms(void);

/* A request was answered, or is over without an answer. */
void kube_cluster_count(struct kube_cluster *k, const char *method,
                        const struct transfer_result *result);
/* One that was sent at since_ms, and is no watch, is over. */
void kube_cluster_took(struct kube_cluster *k, const char *method, int64_t since_ms);

/* Starts what may be started; calls back nobody. After each change of the queue. */
void kube_cluster_pump(struct kube_cluster *k);

/* call.c */
int call_send(struct cluster *cluster, const struct cluster_request *request, cluster_done_fn *done,
              void *arg, struct cluster_call **ret, struct muster_err *err);
void call_cancel(struct cluster_call *call);

/* watch.c */
int watch_open(struct cluster *cluster, const struct cluster_scope *scope, cluster_watch_fn *fn,
               void *arg, struct cluster_watch **ret, struct muster_err *err);
void watch_close(struct cluster_watch *watch);
