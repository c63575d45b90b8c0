/* --cluster_spec: a Python file whose with_pod changes the pods of a job, as with ElasticDL.
 *
 * Layer: cli. Runs the file in a python3 that has the package `kubernetes`; what it prints goes to
 * standard error.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

/* Changes the templates of the job. MUSTER_ENOENT: there is no such file, or no python3 for it;
 * MUSTER_EDATA: it failed; MUSTER_ETIMEDOUT: it did not end. */
int cluster_file_apply(const char *file, json_t *job, struct muster_err *err);
