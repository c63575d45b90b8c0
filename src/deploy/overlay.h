/* The objects that an overlay of deploy/ consists of, as `kubectl kustomize deploy/overlays/NAME`
 * prints them: what of kustomize those files use (resources, patches of RFC 6902, a namespace).
 *
 * Layer: pure. Ownership: the caller's result. Thread: any.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

struct overlay_choice {
    const char *overlay;     /* "cluster" */
    const char *namespace;   /* instead of the overlay's own; NULL; where the overlay has one */
    const char *image;       /* instead of the operator's; NULL */
    const char *pull_secret; /* with the password of the image's registry; NULL */
};

/* A new array. MUSTER_ENOENT: there is no such overlay; MUSTER_EINVAL: this one has a namespace of
 * its own, or no cluster would take the namespace, the image or the secret's name. */
int overlay_objects(const struct overlay_choice *choice, json_t **ret, struct muster_err *err);
