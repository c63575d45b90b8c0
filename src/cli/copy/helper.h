/* The pod that serves the files of a job's volumes (deploy/copy/serve.py). It mounts the volumes
 * that outlive the job's own pod, read-only, and uses the job's image, so that nothing new is
 * pulled.
 *
 * Layer: cli; pure. Ownership: new references.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

enum { HELPER_PORT = 8080 };

struct helper {
    const json_t *pod;     /* the job's pod, or a pod made from the job's template */
    const char *container; /* the container whose mounts are meant */
    const json_t *owner; /* the helper is deleted with it: the job, or the pod itself; NULL: none */
    const char *image;   /* NULL: the container's */
    const char *name;
    const char *token;
    const char *path; /* the requested path */
};

/* MUSTER_ENOENT: there is no such container, or it has no volume that outlives the pod. */
int helper_make(const struct helper *helper, json_t **ret, struct muster_err *err);
