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

typedef const char *control_namer(const struct job *job, enum job_role role, int index,
                                  char ret_name[CONTROL_NAME_BYTES]);

/* "<job>-worker-1": of the Service by which others find the replica, and of its pod. */
control_namer control_service_name;
/* The same, or "elasticdl-<job>-master" and "<job>-edljob-worker-1" where the job says so. */
control_namer control_pod_name;
/* "<template>-<pod>". */
const char *control_claim_name(const json_t *claim_template, const char *pod_name,
                               char ret_name[2 * CONTROL_NAME_BYTES]);

json_t *control_make_pod(const struct job *job, enum job_role role, int index);
/* Only a coordinator that was killed is started again in its pod, beside its journal: one that has
 * ended by itself has said its last word. pod is taken; NULL stays NULL. */
json_t *control_end_coordinator(const struct job *job, json_t *pod);
json_t *control_make_service(const struct job *job, enum job_role role, int index);
json_t *control_make_claim(const struct job *job, enum job_role role, int index,
                           const json_t *claim_template);

/* Of all that the job controls. */
json_t *control_owner_reference(const struct job *job);

/* "training.kubeflow.org/job-name=N,…": replicaStatuses.X.selector; the caller frees. */
char *control_selector(const struct job *job, enum job_role role);
