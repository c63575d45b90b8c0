/* Tells why an image cannot be pulled, in one line that stays the same while a kubelet tries again
 * and again (ErrImagePull and ImagePullBackOff take turns). Layer: cli; pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct image_waiting {
    char why[1024];    /* "the registry HOST does not give the image IMAGE: …" */
    char command[512]; /* makes the pull secret that is missing or wrong; "": another cause */
    bool missing;      /* waiting does not help: a wrong password, no such image */
};

/* Reads a container's status; false if it does not wait for an image, or if nothing more than that
 * is known. */
bool image_waiting_of(const json_t *pod, const json_t *status, struct image_waiting *ret);
