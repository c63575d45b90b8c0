/* What a container runs: its command, or what stands for its image's ENTRYPOINT, which a machine
 * without containers cannot read.
 *
 * Layer: program (daemon), no I/O.
 */
#pragma once

#include "job/problem.h"

#include <jansson.h>
#include <muster/err.h>

/* Sets *ret to the words that stand for the ENTRYPOINT (a new array, in which no variable is
 * expanded): from the job's --image mapping, or else from the command annotation of the pod, or
 * else of the job. *ret is NULL when the container has a command of its own and needs none. On
 * MUSTER_EDATA, `err` says exactly what is missing. */
int image_entrypoint(const json_t *job, const json_t *pod_annotations, const json_t *container,
                     json_t **ret, struct muster_err *err);

/* Adds an error for each container that has nothing to run. */
void image_check(const json_t *job, struct job_problems *problems);
