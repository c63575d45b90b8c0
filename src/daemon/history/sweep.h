/* Removes the folders of deleted jobs: jobs/UID is removed when its job, its pods and its processes
 * are gone and no `muster run` still reads there. If the job has finished, its folder first becomes
 * a run of the history (archive.h), within the history's limits (prune.h).
 *
 * Layer: program (daemon). Thread: the loop's; slow work is done in a thread, one folder at a time.
 */
#pragma once

#include "base/home.h"
#include "daemon/object/leases.h"

struct sweep;

/* Continues what earlier controllers began. From then on each finished job that is deleted is
 * recorded (store_on_delete). */
int sweep_new(uv_loop_t *loop, struct store *store, const struct home *home,
              const struct leases *leases, struct sweep **ret, struct muster_err *err);
/* Run the loop once more after this; close the store after that. */
struct sweep *sweep_free(struct sweep *sweep);

/* Does what can be done now; must be called from time to time. */
void sweep_look(struct sweep *sweep);

/* Returns the number of the run that a job of this name is now, or would be. */
int64_t sweep_next_run(const struct sweep *sweep, const char *namespace, const char *name);

/* Returns the deleted jobs that are not in the history yet: [{"run", "job", "pods"}], a new
 * reference. Namespace and name may be NULL: any. */
json_t *sweep_pending(const struct sweep *sweep, const char *namespace, const char *name);
