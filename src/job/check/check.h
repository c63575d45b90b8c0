/* Validation and lint: finds all mistakes of an object at once.
 *
 * Layer: pure. Thread: any.
 */
#pragma once

#include "base/yaml/yaml.h"
#include "job/problem.h"

/* Checks an object of a kind that we know (PyTorchJob, ConfigMap, Secret, PersistentVolumeClaim,
 * Namespace); another kind is an error. `source` has the places; it is NULL for an object that came
 * through the API. */
void job_check(const json_t *object, const struct yaml_document *source,
               struct job_problems *problems);

/* Checks the metadata of an object of any kind. */
void job_check_metadata(const json_t *object, struct job_problems *problems);

/* Checks a pod that was not made by a job, with its metadata. */
void job_check_pod(const json_t *object, struct job_problems *problems);

/* Checks what must not change between two versions of a job (managedBy …). */
void job_check_update(const json_t *before, const json_t *after, struct job_problems *problems);
