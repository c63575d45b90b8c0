/* Checks the objects of a file against each other: what is there twice, and what jobs need that is
 * missing.
 *
 * Layer: pure.
 */
#pragma once

#include "base/yaml/yaml.h"
#include "job/problem.h"

/* Adds an error for each object that has the kind, namespace and name of an earlier one. */
void job_references_unique(json_t *const *objects, const struct yaml_document *sources,
                           size_t count, struct job_problems *problems);

/* Adds a note for each claim, ConfigMap and Secret that is not in the file: it must exist when the
 * job starts, or the job's pods wait. `sources` are the documents of the objects, in the same
 * order. */
void job_references_check(json_t *const *objects, const struct yaml_document *sources, size_t count,
                          struct job_problems *problems);
