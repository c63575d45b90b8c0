/* Ends every job, and every pod without a job, for `muster down`.
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "store/store.h"

#include <muster/err.h>

/* The next job, or pod, is asked also where one could not be, whose code is the result; pods only
 * once every job was. */
int end_all(struct store *store, struct muster_err *err);
