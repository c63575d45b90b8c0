/* Makes the part of the status that follows from the pods: replicaStatuses and the times.
 *
 * Layer: pure.
 */
#pragma once

#include "control/step.h"

/* `before` and `now`: the state before and after this step's rules. */
void control_refresh_status(struct control_step *step, enum control_state before,
                            enum control_state now);
