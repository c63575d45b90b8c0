/* Finds a pod's files on this machine. Layer: cli; place_resolve looks at the file system. */
#pragma once

#include "cli/command/cli.h"

/* Gets what the controller knows about a container: {"cwd", "mounts": [{"name", "mountPath",
 * "hostPath", "subPath"}], "logs": [paths]}; new reference. */
int place_get(struct cli *cli, const json_t *pod, const char *container, json_t **ret);

/* Translates a path that the container uses into a path of this machine. An absolute path is found
 * through the deepest mount that holds it, else taken as it is; a relative path is found in the
 * first mount that has it, else below the working directory. The caller frees it; NULL when out of
 * memory. */
char *place_resolve(const json_t *place, const char *path);
