/* What the first pods of a job ask for together: their containers' requests, and limits where there
 * is no request, as Kubernetes takes them. Masters are first.
 *
 * Layer: pure.
 */
#pragma once

#include "job/job.h"

/* The sums by resource: a new reference, NULL when out of memory. Texts that are no quantity are
 * left out. */
json_t *control_resources_of(const struct job *job, int32_t pods);
