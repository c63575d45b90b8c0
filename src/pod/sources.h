/* Where a variable's value comes from (valueFrom, envFrom).
 *
 * Layer: pure.
 */
#pragma once

#include "base/buf.h"
#include "pod/environment.h"

#include <stdbool.h>

struct source_scope {
    const json_t *pod;
    const json_t *container;
    const struct pod_sources *sources;
};

/* Appends the value of an EnvVarSource. 1: there is one; 0: optional and missing; negative: error.
 */
int pod_value_from(const struct source_scope *scope, const json_t *value_from, struct buf *out,
                   struct muster_err *err);

/* Adds the keys of one EnvFromSource to `env`. */
int pod_env_from(const struct source_scope *scope, const json_t *source, json_t *env,
                 struct muster_err *err);
