/* Old layouts of PyTorchJob, read into v1.
 *
 * v1beta1 and v1beta2 of pytorch-operator v0.4 to v0.6, and v1 of the old operator (v0.7 to v1.1),
 * had the fields of runPolicy directly under spec.
 *
 * Layer: pure.
 */
#pragma once

#include "base/yaml/yaml.h"
#include "job/problem.h"

/* Changes `object` in place and notes each change; an object that is not a PyTorchJob is unchanged.
 * Returns 0 or MUSTER_ENOMEM. */
int job_upgrade(json_t *object, const struct yaml_document *source, struct job_problems *problems);
