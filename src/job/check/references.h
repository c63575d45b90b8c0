/* Checks the objects of a file against each other: what is there twice, and what jobs need that is
 * missing.
 *
 * Layer: pure.
 */
#pragma once

#include "base/yaml/yaml.h"
#include "job/problem.h"

/* Adds an error for each object whose kind, namespace and name an earlier one has. */
void job_references_unique(json_t *const *objects, const struct yaml_document *sources,
                           size_t count, struct job_problems *problems);

/* Adds a note for each claim, ConfigMap and Secret that is not in the file: it must be there when
 * the job starts, or its pods wait. `sources` are the documents that the objects came from, in the
 * same order. */
void job_references_check(json_t *const *objects, const struct yaml_document *sources, size_t count,
                          struct job_problems *problems);
