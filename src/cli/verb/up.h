/* Functions that `up` and `kubeconfig` share. */
#pragma once

#include "cli/command/cli.h"

/* Connects, starts a controller if none runs, and tells it to keep running; *ret_status is its
 * status. */
int up_keep(struct cli *cli, json_t **ret_status);
