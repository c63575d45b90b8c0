/* Keeps the objects of deleted pods as they were last, in jobs/UID/pods/POD-UID.json.
 *
 * Logs and records lie beside them (jobs/UID/containers/POD-UID) and stay as long as the job's
 * folder, however early its pods are deleted; this tells whose they are.
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "base/home.h"

#include <jansson.h>
#include <muster/err.h>

struct deleted_pods {
    char *folder, *path, *text;
};

/* Prepares what deleted_pods_write writes before the pod's object is deleted. `status` is the pod's
 * last one. */
int deleted_pods_init(struct deleted_pods *ret, const char *job_folder, const json_t *pod,
                      const json_t *status, struct muster_err *err);
/* Writes and syncs it. Thread: any. */
int deleted_pods_write(const struct deleted_pods *remains, struct muster_err *err);
void deleted_pods_done(struct deleted_pods *remains);

/* Returns all pods of the job that were kept, oldest first: a new array, empty when there is
 * none. */
json_t *deleted_pods_list(const struct home *home, const char *job_uid);
/* Returns the pod with this uid from any job's folder, also from a deleted job's folder that still
 * exists: a new reference, or NULL. */
json_t *deleted_pods_find(const struct home *home, const char *pod_uid);
