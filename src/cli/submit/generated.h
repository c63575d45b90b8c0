/* The PyTorchJob of `run -n N -- COMMAND`. Layer: cli. */
#pragma once

#include "cli/submit/objects.h"

/* Makes the job in *ret, after the claims that it mounts. MUSTER_EINVAL names the option that is
 * wrong. */
int generated_job(struct cli *cli, struct objects *ret);

/* Fails with MUSTER_EINVAL and explains -n, which was meant as a namespace. */
int generated_explain_ranks(struct cli *cli);
