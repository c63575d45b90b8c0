/* What the operator has done, as Prometheus reads it.
 *
 * A job's transitions are counted when the write that says them was answered, so each counts once,
 * whichever operator made it, and nothing is counted again when an operator starts.
 *
 * Layer: program. Ownership: metrics_done; `= {0}` is a valid start.
 */
#pragma once

#include "base/buf.h"
#include "control/control.h"

enum { METRICS_NAMESPACES_MAX = 5000 };

struct metrics_namespace;

struct metrics {
    struct metrics_namespace *namespaces;
    uint64_t pods_created, pods_deleted, services_created;
    size_t namespace_count;
    const char *lease; /* its name; NULL: nobody is elected */
    bool leads;        /* this operator is the one that works */
};

void metrics_done(struct metrics *metrics);

/* driver_options.did */
void metrics_did(struct metrics *metrics, const struct control_effect *effect, const json_t *before,
                 const json_t *after);
/* "namespace/name" is not there any more. */
void metrics_gone(struct metrics *metrics, const char *job);

/* In the text format, version 0.0.4. */
void metrics_print(const struct metrics *metrics, size_t live_jobs, struct buf *out);
