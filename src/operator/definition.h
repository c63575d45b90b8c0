/* What the cluster's definition of PyTorchJobs does to them: upstream's own has no field for what
 * the operator counts (.status.counters), and an API server drops what a definition does not name.
 *
 * Layer: program. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Whether the counters of a kubeflow.org/v1 PyTorchJob are kept; true where it cannot be told. */
bool definition_keeps_counters(const json_t *definition);
