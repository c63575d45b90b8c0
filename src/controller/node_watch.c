/* The watch of nodes: when a node becomes silent, is out of service or comes back, all live jobs
 * get a step. */
#include "controller/internal.h"

const struct cluster_resource driver_nodes = {"", "v1", "nodes", "Node", false};

static void look_again(void *arg, const char *key)
{
    struct driver *d = arg;
    (void)queue_add(&d->queue, key, driver_now_ms(d));
}

static void on_change(void *arg, const struct cluster_change *news)
{
    struct driver *d = arg;
    int64_t now_ms = driver_now_ms(d);
    bool changed = false;
    switch (news->news) {
    case CLUSTER_BEGIN: nodes_begin(&d->nodes); break;
    case CLUSTER_OBJECT: changed = nodes_put(&d->nodes, news->object, now_ms); break;
    case CLUSTER_GONE: changed = nodes_remove(&d->nodes, news->object); break;
    case CLUSTER_SYNCED: changed = nodes_synced(&d->nodes); break;
    case CLUSTER_BOOKMARK: break;
    case CLUSTER_ANSWERED: break;
    case CLUSTER_TROUBLE: driver_say(d, "controller.watch", "", news->message); break;
    }
    if (changed) {
        cache_each_live_job(&d->cache, look_again, d);
        driver_arm(d);
    }
}

int driver_watch_nodes(struct driver *d, struct muster_err *err)
{
    const struct cluster_scope scope = {.resource = &driver_nodes, .without_managers = true};
    struct cluster *cluster = d->options.cluster;
    return cluster->backend->watch(cluster, &scope, on_change, d, &d->node_watch, err);
}
