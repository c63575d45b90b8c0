/* The options of `run` that override a job: --gpus --cpu --memory --workdir --claim. They apply to
 * every rank, of a generated job (-n) and of a file's jobs (-f) alike.
 *
 * Layer: cli. Ownership: the struct borrows argv; it contains its own address, so it must not move.
 */
#pragma once

#include "cli/submit/objects.h"
#include "job/override.h"

enum { OVERRIDES_CLAIMS_MAX = 16, OVERRIDES_NAME_BYTES = 256, OVERRIDES_PATH_BYTES = 4096 };

struct overrides {
    struct job_override job;
    struct job_claim claims[OVERRIDES_CLAIMS_MAX];
    char folder[OVERRIDES_PATH_BYTES]; /* a relative --workdir, made absolute */
    char names[OVERRIDES_CLAIMS_MAX][OVERRIDES_NAME_BYTES];
};

/* MUSTER_EINVAL names the option that is wrong. */
int overrides_read(struct cli *cli, struct overrides *ret);

/* Changes every job of `objects`, and adds the claims. */
int overrides_apply(struct cli *cli, const struct overrides *overrides, struct objects *objects);

/* Adds a claim of 10Gi beside each job for each --claim that is not among the objects; a claim that
 * exists already is left as it is. */
int overrides_add_claims(struct cli *cli, const struct overrides *overrides,
                         struct objects *objects);
