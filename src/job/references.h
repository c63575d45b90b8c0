/* What a file's jobs need that the file does not hold: claims, ConfigMaps and Secrets.
 *
 * Layer: pure.
 */
#pragma once

#include "base/yaml.h"
#include "job/problem.h"

/* Adds a note for each: it must be there when the job starts, or its pods wait. `sources` are the
 * documents that the objects came from, in the same order. */
void job_references_check(json_t *const *objects, const struct yaml_document *sources, size_t count,
                          struct job_problems *problems);
