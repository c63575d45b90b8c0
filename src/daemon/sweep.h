/* The folders of jobs that were deleted: jobs/UID goes when its job, its pods and its processes
 * are gone and no `muster run` still reads there.
 *
 * Layer: program (daemon). Thread: the loop's. A folder is removed in one go, on the loop.
 */
#pragma once

#include "base/home.h"
#include "daemon/leases.h"

struct sweep;

/* Goes on with what earlier controllers marked. */
int sweep_new(struct store *store, const struct home *home, const struct leases *leases,
              struct sweep **ret, struct muster_err *err);
struct sweep *sweep_free(struct sweep *sweep);

/* Removes what can go now; to be called now and then. */
void sweep_look(struct sweep *sweep);
