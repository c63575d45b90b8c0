/* The entries of a list in the pod templates of a job, each with its place in the job.
 *
 * Layer: pure.
 */
#pragma once

#include <jansson.h>

/* item, role and path are borrowed. path is
 * "spec.pytorchReplicaSpecs.ROLE.template.spec.LIST[INDEX]". A negative result ends the walk. */
typedef int job_item_fn(void *context, const json_t *item, const char *role, const char *path);

/* `list` is "containers", "initContainers" or "volumes". Returns the negative result that ended the
 * walk, otherwise 0. */
int job_each_item(const json_t *job, const char *list, job_item_fn *each, void *context);
