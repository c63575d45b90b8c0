/* Objects that exist once beside a job under the job's own name: its HorizontalPodAutoscaler and
 * its PodGroup. They are compared with what the job asks for, and changed if they differ.
 *
 * Layer: pure.
 */
#pragma once

#include "control/effects.h"
#include "control/step.h"

/* Deletes what the job does not ask for (any more). The objects of a job that is over are deleted
 * with the job. */
void control_companions_drop(const struct control_step *step, struct control_effects *fx);

/* Creates what an active job asks for, or updates it. */
void control_companions_keep(const struct control_step *step, struct control_effects *fx);

/* Does the same for the PodGroup, before the job's pods; returns true if the pods may be
 * created. */
bool control_gang_keep(const struct control_step *step, struct control_effects *fx);
/* Deletes the PodGroup of a job that is over, suspended, or not of the gang's scheduler. */
void control_gang_drop(const struct control_step *step, struct control_effects *fx);

/* Returns the pod of a replica, as the gang's scheduler needs it. */
json_t *control_make_member(const struct control_step *step, enum job_role role, int index);

/* Returns the object to create: a new reference, NULL when out of memory. */
json_t *control_make_pod_group(const struct job *job, const struct control_gang *gang);
json_t *control_make_autoscaler(const struct job *job);
