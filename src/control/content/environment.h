/* The environment that makes a container a rank: upstream's variables, in upstream's order
 * (training-operator v1.9.4, pkg/controller.v1/pytorch/{envvar,master,elastic}.go).
 *
 * Layer: pure.
 */
#pragma once

#include "base/build.h"
#include "job/job.h"

/* Returns the node rank: 0 for the Master, i + 1 for Worker i; i without a Master or under a
 * coordinator, whose own rank is -1. */
int control_rank(const struct job *job, enum job_role role, int index);

/* Appends the replica's variables to `env`, an array of {"name", "value"}. */
void control_environment(struct build *b, const struct job *job, enum job_role role, int index,
                         json_t *env);
