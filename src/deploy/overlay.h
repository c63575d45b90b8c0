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
    const char *namespace;   /* replaces the overlay's own, if it has one; or NULL */
    const char *image;       /* replaces the operator's; or NULL */
    const char *pull_secret; /* has the password of the image's registry; or NULL */
};

/* Returns a new array. MUSTER_ENOENT: there is no such overlay; MUSTER_EINVAL: the overlay has no
 * namespace of its own to replace, or no cluster would accept the namespace, the image or the
 * secret's name. */
int overlay_objects(const struct overlay_choice *choice, json_t **ret, struct muster_err *err);
