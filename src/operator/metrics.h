/* Counts what the operator has done, for Prometheus.
 *
 * A job's transitions are counted when the write that says them was answered, so each counts once,
 * whichever operator made it, and nothing is counted again when an operator starts.
 *
 * Layer: program. Ownership: metrics_done; `= {0}` is a valid start.
 */
#pragma once

#include "base/buf.h"
#include "control/control.h"
#include "controller/driver.h"
#include "kube/cluster/kube_cluster.h"

enum { METRICS_NAMESPACES_MAX = 5000 };

struct metrics_namespace;

struct metrics {
    struct metrics_namespace *namespaces;
    uint64_t pods_created, pods_deleted, pods_failed;
    uint64_t services_created, services_refused;
    uint64_t groups_created, groups_deleted; /* PodGroups */
    uint64_t steps[DRIVER_RESULTS];
    struct histogram took; /* of each step; metrics_stepped initialises it */
    size_t namespace_count;
    const char *lease; /* the lease's name; NULL: there is no election */
    bool leads;        /* this operator is the leader */
};

void metrics_done(struct metrics *metrics);

/* driver_options.did */
void metrics_did(struct metrics *metrics, const struct control_effect *effect, const json_t *before,
                 const json_t *after);
/* "namespace/name" no longer exists. */
void metrics_gone(struct metrics *metrics, const char *job);

/* driver_options.refused, driver_options.stepped */
void metrics_refused(struct metrics *metrics, const struct control_effect *effect);
void metrics_stepped(struct metrics *metrics, enum driver_result result, int64_t took_ms);

/* Values that other parts have counted. */
struct metrics_others {
    struct driver_numbers driver;
    const struct kube_cluster_count *requests;
    size_t request_count;
    const struct kube_cluster_time *times;
    size_t time_count;
    const char *host; /* of the API server */
};

/* Prints the text format, version 0.0.4. */
void metrics_print(const struct metrics *metrics, const struct metrics_others *others,
                   struct buf *out);
