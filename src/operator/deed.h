/* Writes the line of the log about a change to the cluster.
 *
 * Layer: program.
 */
#pragma once

#include "control/control.h"

/* One line for each pod, Service and claim that was made or deleted; of a job's status, its last
 * condition where that has changed. `after`: the job. */
void deed_log(const struct control_effect *effect, const json_t *before, const json_t *after);
