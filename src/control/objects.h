/* The objects a job is made of: pods, headless Services, claims. Names, labels and order of fields
 * are upstream's (training-operator v1.9.4, pkg/controller.v1/common/{pod,service}.go).
 *
 * Layer: pure. Ownership: new references; NULL when out of memory.
 */
#pragma once

#include "job/job.h"

enum { CONTROL_NAME_BYTES = 320 };

#define CONTROL_CONTROLLER "pytorchjob-controller"
#define CONTROL_LABEL(name) "training.kubeflow.org/" name

/* "<job>-worker-1", for the pod and its Service. */
const char *control_member_name(const struct job *job, enum job_role role, int index,
                                char ret_name[CONTROL_NAME_BYTES]);
/* "<template>-<pod>". */
const char *control_claim_name(const json_t *claim_template, const char *pod_name,
                               char ret_name[2 * CONTROL_NAME_BYTES]);

json_t *control_make_pod(const struct job *job, enum job_role role, int index);
json_t *control_make_service(const struct job *job, enum job_role role, int index);
json_t *control_make_claim(const struct job *job, enum job_role role, int index,
                           const json_t *claim_template);

/* "training.kubeflow.org/job-name=N,…": replicaStatuses.X.selector; the caller frees. */
char *control_selector(const struct job *job, enum job_role role);
