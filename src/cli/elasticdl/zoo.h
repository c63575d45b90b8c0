/* elasticdl zoo: makes an image with the user's models, for a cluster.
 *
 * Layer: cli.
 */
#pragma once

#include "cli/command/cli.h"

/* Writes a Dockerfile, and FOLDER/example.py if the folder does not exist. MUSTER_EEXIST: there is
 * a Dockerfile. */
int zoo_init(struct cli *cli);

/* Calls docker, or podman. Returns its exit status, or MUSTER_ENOENT if neither is installed. */
int zoo_build(struct cli *cli, const char *folder, const char *image);
int zoo_push(struct cli *cli, const char *image);
