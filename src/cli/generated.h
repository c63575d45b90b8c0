/* The PyTorchJob of `run -n N -- COMMAND`. Layer: cli. */
#pragma once

#include "cli/objects.h"

/* One object in *ret. MUSTER_EINVAL names the option that is wrong. */
int generated_job(struct cli *cli, struct objects *ret);
