/* Keeps the list of jobs from growing for ever: of the finished jobs that `muster run` made, the
 * newest stay objects; older ones are deleted, and so become runs of the history.
 *
 * Jobs that were created otherwise stay until somebody deletes them or their time to live ends, as
 * on a cluster.
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "daemon/object/leases.h"

/* Returns MUSTER_FINISHED_JOBS, default 100. */
int64_t retire_limit(void);

/* Deletes the oldest jobs above `limit`; a job whose `muster run` is still connected is counted and
 * stays. */
int retire_jobs(struct store *store, const struct leases *leases, int64_t limit,
                struct muster_err *err);
