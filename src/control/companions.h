/* What stands beside a job under the job's own name, one of a kind, and tells others of it: its
 * HorizontalPodAutoscaler. It is compared with what the job asks for, and changed where it differs.
 *
 * Layer: pure.
 */
#pragma once

#include "control/effects.h"
#include "control/step.h"

/* Deletes what the job does not ask for (any more). What a job that is over has goes with it. */
void control_companions_drop(const struct control_step *step, struct control_effects *fx);

/* Makes what an active job asks for, or brings it up to date. */
void control_companions_keep(const struct control_step *step, struct control_effects *fx);

/* As it is created: a new reference, NULL when out of memory. */
json_t *control_make_autoscaler(const struct job *job);
