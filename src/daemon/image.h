/* What a container runs: its command, or what stands for its image's ENTRYPOINT, which a machine
 * without containers cannot read.
 *
 * Layer: program (daemon), no I/O.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

/* A new array of words, args appended, nothing expanded yet. In order of precedence: the
 * container's command; the job's
 * --image mapping; the command annotation of the pod, then of the job. MUSTER_EDATA says exactly
 * what is missing. */
int image_command(const json_t *job, const json_t *pod_annotations, const json_t *container,
                  json_t **ret, struct muster_err *err);

/* Every container of every replica has something to run, else the first that has not is named. */
int image_check(const json_t *job, struct muster_err *err);
