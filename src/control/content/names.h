/* The names of a job's objects.
 *
 * Layer: pure.
 */
#pragma once

#include "job/job.h"

enum { CONTROL_NAME_BYTES = 320 };

typedef const char *control_namer(const struct job *job, enum job_role role, int index,
                                  char ret_name[CONTROL_NAME_BYTES]);

/* Writes "<job>-worker-1": the name of the replica's Service, by which others find it, and of its
 * pod. */
control_namer control_service_name;
/* Writes the same, or "elasticdl-<job>-master" and "<job>-edljob-worker-1" if the job asks for
 * that. */
control_namer control_pod_name;
/* Writes "<template>-<pod>". */
const char *control_claim_name(const json_t *claim_template, const char *pod_name,
                               char ret_name[2 * CONTROL_NAME_BYTES]);
