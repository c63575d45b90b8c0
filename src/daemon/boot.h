/* A machine that was restarted has lost every process: jobs that ran are marked as failed, with
 * this reason, instead of waiting for ever.
 *
 * Layer: program (daemon).
 */
#pragma once

#include "base/home.h"
#include "store/store.h"

/* Compares the kernel's boot id with the one in MUSTER_HOME/boot. If they differ, ends live jobs
 * and writes the new id. */
int boot_check(const struct home *home, struct store *store, struct muster_err *err);
