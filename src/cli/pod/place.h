/* Finds where a pod's files lie on this machine. Layer: cli; place_resolve looks at the file
 * system. */
#pragma once

#include "cli/command/cli.h"

/* What the controller knows of a container: {"cwd", "mounts": [{"name", "mountPath", "hostPath",
 * "subPath"}], "logs": [paths]}; new reference. */
int place_get(struct cli *cli, const json_t *pod, const char *container, json_t **ret);

/* Makes a path of this machine of one that the container uses: an absolute one is found through the
 * deepest mount that holds it, else as it is; a relative one in the first mount that has it, else
 * below the working directory. The caller frees; NULL when out of memory. */
char *place_resolve(const json_t *place, const char *path);
