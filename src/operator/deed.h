/* Writes the line of the log about a change to the cluster.
 *
 * Layer: program.
 */
#pragma once

#include "control/control.h"

/* Logs one line for each pod, Service and claim that was created or deleted; for a job's status,
 * its last condition if that has changed. `after`: the job. */
void deed_log(const struct control_effect *effect, const json_t *before, const json_t *after);
