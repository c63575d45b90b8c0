/* Bounds the controller's own log: one that has become too long is put aside as daemon.log.old, in
 * place of the one before, and a new one begins.
 *
 * Layer: program (daemon). Thread: the loop's. Another process that holds the file open writes into
 * the old one; none does for long.
 */
#pragma once

#include "base/home.h"

enum { OWN_LOG_BYTES_MAX = 8 << 20 }; /* checked from time to time: it may grow a little longer */

/* Bounds the standard error of a controller, if it is daemon.log; any other file is left alone. */
void own_log_bound(const struct home *home);
