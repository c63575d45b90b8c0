/* elasticdl zoo: makes an image with the user's models, for a cluster.
 *
 * Layer: cli.
 */
#pragma once

#include "cli/command/cli.h"

/* Writes Dockerfile, and FOLDER/example.py where the folder is not there. MUSTER_EEXIST: a
 * Dockerfile is. */
int zoo_init(struct cli *cli);

/* Calls docker, or podman. Returns its exit status, or MUSTER_ENOENT where neither is. */
int zoo_build(struct cli *cli, const char *folder, const char *image);
int zoo_push(struct cli *cli, const char *image);
