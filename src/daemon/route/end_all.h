/* Ends every job, and every pod without a job, for `muster down`.
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "store/store.h"

#include <muster/err.h>

/* Ends every job, and then every pod without a job. If an object cannot be ended, the others of its
 * kind are still ended, and its error code is the result; pods are ended only if every job was. */
int end_all(struct store *store, struct muster_err *err);
