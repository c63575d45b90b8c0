/* Options of a command line that override a job's file: limits, working directory and claims of
 * every rank, that is of the container called pytorch in each replica.
 *
 * Layer: pure. Thread: any.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stddef.h>

struct job_claim {
    const char *name; /* name of a PersistentVolumeClaim */
    const char *path; /* mount path in the container */
};

/* `= {0}` changes nothing. */
struct job_override {
    const char *gpus;   /* "2"; "0" removes the request */
    const char *cpu;    /* limits: "2", "500m" */
    const char *memory; /* "4Gi" */
    const char *working_dir;
    const struct job_claim *claims;
    size_t claim_count;
};

/* Changes the job. A limit also removes the request of the same resource, which is then equal to
 * the limit, as in Kubernetes. The error MUSTER_EINVAL names the option that is wrong, or the mount
 * that already exists; the job may then be partly changed. */
int job_override(json_t *job, const struct job_override *override, struct muster_err *err);
