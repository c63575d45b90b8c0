/* The PyTorchJob of `run -n N -- COMMAND`. Layer: cli. */
#pragma once

#include "cli/submit/objects.h"

/* The job in *ret, after the claims it mounts. MUSTER_EINVAL names the option that is wrong. */
int generated_job(struct cli *cli, struct objects *ret);

/* MUSTER_EINVAL: -n was meant as a namespace. */
int generated_explain_ranks(struct cli *cli);
