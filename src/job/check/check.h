/* Validation and lint: finds all mistakes of an object at once.
 *
 * Layer: pure. Thread: any.
 */
#pragma once

#include "base/yaml/yaml.h"
#include "job/problem.h"

/* Any kind we know (PyTorchJob, ConfigMap, Secret, PersistentVolumeClaim, Namespace); another kind
 * is an error. `source` gives the places; NULL for an object that came by the API. */
void job_check(const json_t *object, const struct yaml_document *source,
               struct job_problems *problems);

/* The metadata of an object of any kind. */
void job_check_metadata(const json_t *object, struct job_problems *problems);

/* A pod that no job made, its metadata included. */
void job_check_pod(const json_t *object, struct job_problems *problems);

/* What may not change between two versions of a job (managedBy …). */
void job_check_update(const json_t *before, const json_t *after, struct job_problems *problems);
