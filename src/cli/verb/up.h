/* Functions that `up` and `kubeconfig` share. */
#pragma once

#include "cli/command/cli.h"

/* Connects, starts a controller where none is, tells it to stay; its status in *ret_status. */
int up_keep(struct cli *cli, json_t **ret_status);
