/* Files of a job on a cluster: a pod is made that serves them (helper.h), they are read through the
 * API server's proxy, and the pod goes again, also when this command is interrupted.
 *
 * Layer: cli. Runs the loop until it is over.
 */
#pragma once

#include "cli/command/cli.h"

struct fetch_order {
    const json_t *pod;     /* the job's, or as it was made */
    const char *container; /* whose mounts are meant */
    const json_t *owner;   /* of the pod that is made; NULL: nobody */
    const char *image;     /* NULL: the container's */
    const char *path;
    const char *to; /* the file or folder that it becomes */
};

/* 0, or 128 + the signal that ended it. */
int fetch_run(struct cli *cli, const struct fetch_order *order);
