/* --max-restarts: all ranks of a job together (control/status/attempt.h).
 *
 * Layer: cli.
 */
#pragma once

#include "base/buf.h"
#include "cli/command/cli.h"

/* Adds the annotation of --max-restarts to a job; no-op without the option. MUSTER_EINVAL: the
 * number is wrong, or a replica's restartPolicy restarts it alone. */
int restarts_set(struct cli *cli, json_t *job);

/* How often all ranks were restarted until now. */
int64_t restarts_of(const json_t *job);

/* Appends "restart 1 of 3: mnist-worker-0 (rank 1) exited with code 1\n" when `job` is in another
 * attempt than `before` was. */
void restarts_tell(const json_t *before, const json_t *job, struct buf *out);
