/* What the cluster can do. Its definition of PyTorchJobs: upstream's own has no field for what the
 * operator counts (.status.counters), and an API server drops what a definition does not name. Its
 * version: whether containers may have rules of their own by which they are started again.
 *
 * Layer: program. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Whether the API server keeps the counters of a kubeflow.org/v1 PyTorchJob; true if this is
 * unknown. */
bool definition_keeps_counters(const json_t *definition);
/* Whether /version is 1.35 or newer: an older server refuses restart policies of single
 * containers. */
bool version_has_restart_rules(const json_t *version);
