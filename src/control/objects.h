/* Makes the objects of a job: pods, headless Services, claims. Names, labels and order of fields
 * are upstream's (training-operator v1.9.4, pkg/controller.v1/common/{pod,service}.go).
 *
 * Layer: pure. Ownership: new references; NULL when out of memory.
 */
#pragma once

#include "control/content/names.h"
#include "job/job.h"

#define CONTROL_CONTROLLER "pytorchjob-controller"
#define CONTROL_LABEL(name) "training.kubeflow.org/" name

json_t *control_make_pod(const struct job *job, enum job_role role, int index);
/* Makes the pod restart the coordinator, beside its journal, only if it was killed, not if it has
 * ended by itself. pod is taken; NULL stays NULL. */
json_t *control_end_coordinator(const struct job *job, json_t *pod);
json_t *control_make_service(const struct job *job, enum job_role role, int index);
json_t *control_make_claim(const struct job *job, enum job_role role, int index,
                           const json_t *claim_template);

/* Returns the owner reference of all objects that the job controls. */
json_t *control_owner_reference(const struct job *job);

/* Returns "training.kubeflow.org/job-name=N,…": replicaStatuses.X.selector; the caller frees it. */
char *control_selector(const struct job *job, enum job_role role);
