/* The names of a job's objects.
 *
 * Layer: pure.
 */
#pragma once

#include "job/job.h"

enum { CONTROL_NAME_BYTES = 320 };

typedef const char *control_namer(const struct job *job, enum job_role role, int index,
                                  char ret_name[CONTROL_NAME_BYTES]);

/* "<job>-worker-1": of the Service by which others find the replica, and of its pod. */
control_namer control_service_name;
/* The same, or "elasticdl-<job>-master" and "<job>-edljob-worker-1" where the job says so. */
control_namer control_pod_name;
/* "<template>-<pod>". */
const char *control_claim_name(const json_t *claim_template, const char *pod_name,
                               char ret_name[2 * CONTROL_NAME_BYTES]);
