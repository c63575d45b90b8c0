/* Copies files of a job on a cluster: makes a pod that serves them (helper.h), reads them through
 * the API server's proxy, and deletes the pod, also when this command is interrupted.
 *
 * Layer: cli. Runs the loop until it is over.
 */
#pragma once

#include "cli/command/cli.h"

struct fetch_order {
    const json_t *pod;     /* the job's pod, or a pod made from the job's template */
    const char *container; /* the container whose mounts are meant */
    const json_t *owner;   /* owner of the pod that is made; NULL: none */
    const char *image;     /* NULL: the container's */
    const char *path;
    const char *to; /* the file or folder to write */
};

/* Returns 0, or 128 + the signal that ended the copy. */
int fetch_run(struct cli *cli, const struct fetch_order *order);
