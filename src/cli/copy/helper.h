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
    const json_t *pod;     /* the job's, or as it was made */
    const char *container; /* whose mounts are meant */
    const json_t *owner;   /* goes with it: the job, else the pod itself; NULL: nobody */
    const char *image;     /* NULL: the container's */
    const char *name;
    const char *token;
    const char *path; /* asked for */
};

/* MUSTER_ENOENT: there is no such container, or it has no volume that outlives the pod. */
int helper_make(const struct helper *helper, json_t **ret, struct muster_err *err);
