/* What `muster down` asks for: every job ends, and every pod of no job.
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "store/store.h"

#include <muster/err.h>

/* The next job, or pod, is asked also where one could not be, whose code is the result; pods only
 * once every job was. */
int end_all(struct store *store, struct muster_err *err);
