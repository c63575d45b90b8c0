/* The operator of the embedded cluster: watches the store and carries out what control_reconcile
 * decides.
 *
 * Layer: program (daemon). Thread: the loop's. It is the driver of src/controller over the store as
 * a cluster (store_cluster.h).
 */
#pragma once

#include "store/store.h"

#include <uv.h>

struct controller;

/* Makes the operator, and queues every job that exists. */
int controller_new(uv_loop_t *loop, struct store *store, struct controller **ret,
                   struct muster_err *err);

/* Run the loop once more after this. */
struct controller *controller_free(struct controller *controller);

/* The number of jobs that are not finished yet. */
size_t controller_live_jobs(const struct controller *controller);

/* Whether there is a live job, or a job for which a step is due (a time to live that runs). */
bool controller_busy(const struct controller *controller);
