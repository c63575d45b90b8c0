/* Finds the value of a variable that comes from elsewhere (valueFrom, envFrom).
 *
 * Layer: pure.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdint.h>

/* The objects and values of the cluster that a pod's environment may refer to. */
struct pod_sources {
    const json_t *config_maps; /* object: name → ConfigMap, of the pod's namespace; may be NULL */
    const json_t *secrets;     /* object: name → Secret (data is base64, stringData plain) */
    const char *node_name;     /* for fieldRef spec.nodeName, status.hostIP, status.podIP */
    const char *host_ip;
    const char *pod_ip;
    int64_t node_cpu_milli; /* for a resourceFieldRef without a limit */
    int64_t node_memory_bytes;
};

struct source_scope {
    const json_t *pod;
    const json_t *container;
    const struct pod_sources *sources;
};

/* Appends the value of an EnvVarSource. Returns 1: there is one; 0: optional and missing; negative:
 * error. */
int pod_value_from(const struct source_scope *scope, const json_t *value_from, struct buf *out,
                   struct muster_err *err);

/* Adds the keys of one EnvFromSource to `env`. */
int pod_env_from(const struct source_scope *scope, const json_t *source, json_t *env,
                 struct muster_err *err);
