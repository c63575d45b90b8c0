/* The counters of a job that an earlier version of muster began. It kept them in annotations,
 * which are read as long as the status has no counters.
 *
 * Layer: pure.
 */
#pragma once

#include "base/build.h"
#include "control/observe.h"

/* Returns the counters in the form of .status.counters (counters.h). New reference; NULL: see
 * `b`. */
json_t *control_old_counters(struct build *b, const struct control_observed *o);
