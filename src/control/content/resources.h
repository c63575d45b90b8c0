/* The resources that the first pods of a job request together: their containers' requests, or the
 * limits if there is no request, as Kubernetes takes them. Masters come first.
 *
 * Layer: pure.
 */
#pragma once

#include "job/job.h"

/* Returns the sums by resource: a new reference, NULL when out of memory. Texts that are not
 * quantities are left out. */
json_t *control_resources_of(const struct job *job, int32_t pods);
