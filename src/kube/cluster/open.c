/* Opens and closes the cluster, and runs the timer that drives the queue. */
#include "kube/cluster/internal.h"

#include "base/err.h"
#include "controller/fair_share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { QPS = 20, BURST = 30, OF_NAMESPACE_MAX = 16, NS_PER_MS = 1000000 };

int64_t kube_cluster_now_ms(void)
{
    return (int64_t)(uv_hrtime() / NS_PER_MS);
}

void kube_cluster_count(struct kube_cluster *k, const char *method,
                        const struct transfer_result *result)
{
    int status = result->curl_code == CURLE_OK ? (int)result->http_status : 0;
    size_t i = 0;
    while (i < k->count_count &&
           (k->counts[i].http_status != status || strcmp(k->counts[i].method, method) != 0)) {
        i++;
    }
    if (i == k->count_count && i < KUBE_CLUSTER_COUNTS_MAX) {
        k->counts[i].http_status = status;
        (void)snprintf(k->counts[i].method, sizeof k->counts[i].method, "%s", method);
        k->count_count++;
    }
    if (i < k->count_count) {
        k->counts[i].count++;
    }
}

const struct kube_cluster_count *kube_cluster_counts(const struct cluster *cluster, size_t *ret)
{
    const struct kube_cluster *k = (const struct kube_cluster *)cluster;
    *ret = k->count_count;
    return k->counts;
}

void kube_cluster_took(struct kube_cluster *k, const char *method, int64_t since_ms)
{
    /* the buckets of Kubernetes' own components */
    static const double limits[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
    size_t i = 0;
    while (i < k->time_count && strcmp(k->times[i].method, method) != 0) {
        i++;
    }
    if (i == k->time_count && i < KUBE_CLUSTER_METHODS_MAX) {
        (void)snprintf(k->times[i].method, sizeof k->times[i].method, "%s", method);
        histogram_init(&k->times[i].took, limits, sizeof limits / sizeof limits[0]);
        k->time_count++;
    }
    if (i < k->time_count) {
        histogram_add(&k->times[i].took, kube_cluster_now_ms() - since_ms);
    }
}

const struct kube_cluster_time *kube_cluster_times(const struct cluster *cluster, size_t *ret)
{
    const struct kube_cluster *k = (const struct kube_cluster *)cluster;
    *ret = k->time_count;
    return k->times;
}

static void on_tick(uv_timer_t *timer)
{
    struct kube_cluster *k = timer->data;
    struct pace_item *item;
    while ((item = pace_late(&k->queue, kube_cluster_now_ms())) != NULL) {
        struct turn *turn = (struct turn *)item;
        turn->late(turn);
        if (uv_is_closing((uv_handle_t *)timer)) {
            return; /* its owner closed the cluster */
        }
    }
    kube_cluster_pump(k);
}

void kube_cluster_pump(struct kube_cluster *k)
{
    struct pace_item *item;
    int64_t wake_ms = PACE_NEVER, now_ms = kube_cluster_now_ms();
    while ((item = pace_next(&k->queue, (int64_t)uv_hrtime(), &wake_ms)) != NULL) {
        struct turn *turn = (struct turn *)item;
        turn->start(turn);
    }
    if (wake_ms == PACE_NEVER) {
        uv_timer_stop(&k->tick);
        return;
    }
    uv_update_time(k->tick.loop); /* a timer counts from the loop's time, which may be old */
    uv_timer_start(&k->tick, on_tick, wake_ms > now_ms ? (uint64_t)(wake_ms - now_ms) : 0, 0);
}

static void freed(uv_handle_t *handle)
{
    free(handle->data);
}

void kube_cluster_close(struct cluster *cluster)
{
    struct kube_cluster *k = (struct kube_cluster *)cluster;
    if (!k) {
        return;
    }
    while (k->calls) {
        call_cancel(k->calls);
    }
    while (k->watches) {
        watch_close(k->watches);
    }
    transport_close(k->transport);
    kube_endpoint_close(k->endpoint);
    uv_close((uv_handle_t *)&k->tick, freed);
}

static int set_up(struct kube_cluster *k, struct target *target, struct muster_err *err)
{
    int r = transport_open(k->tick.loop, &k->transport, err);
    return r < 0 ? r : kube_endpoint_open(target, &k->endpoint, err);
}

int kube_cluster_open(uv_loop_t *loop, struct target *target,
                      const struct kube_cluster_options *options, struct cluster **ret,
                      struct muster_err *err)
{
    static const struct cluster_backend backend = {
        .send = call_send, .cancel = call_cancel, .watch = watch_open, .unwatch = watch_close};
    struct kube_cluster *k = calloc(1, sizeof *k);
    const struct kube_cluster_options none = {0}, *o = options ? options : &none;
    if (!k) {
        return err_no_memory(err);
    }
    k->base.backend = &backend;
    pace_init(&k->queue, o->qps != 0 ? o->qps : QPS, o->burst > 0 ? o->burst : BURST,
              o->under_way_max > 0 ? o->under_way_max : (int)fair_share_places(OF_NAMESPACE_MAX));
    k->chance.state = o->seed;
    if (!k->chance.state) {
        (void)!getrandom(&k->chance.state, sizeof k->chance.state, 0); /* any value will do */
    }
    uv_timer_init(loop, &k->tick);
    k->tick.data = k;
    int r = set_up(k, target, err);
    if (r < 0) {
        kube_cluster_close(&k->base);
        return r;
    }
    transport_ask_before(k->transport, o->may_send, o->arg);
    *ret = &k->base;
    return 0;
}
