/* The HorizontalPodAutoscaler of a job: by its metrics a cluster changes Worker.replicas, through
 * the job's subresource scale. It is upstream's (training-operator v1.9.4,
 * pkg/controller.v1/pytorch/hpa.go).
 *
 * Layer: pure.
 */
#pragma once

#include "job/job.h"

/* Whether the job is elastic, has metrics, and is not suspended. */
bool control_wants_autoscaler(const struct job *job);

/* Returns the autoscaler's spec: a new reference, NULL when out of memory. */
json_t *control_autoscaler_spec(const struct job *job);
