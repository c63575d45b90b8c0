/* Finds out what the cluster can do. Its definition of PyTorchJobs: upstream's has no field for the
 * operator's counters (.status.counters), and an API server drops fields that a definition does not
 * name. Its version: whether containers may have restart rules of their own.
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
