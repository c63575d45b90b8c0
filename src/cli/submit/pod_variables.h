/* -e and --env-file for a job of a cluster: entries of env in its containers, where everybody who
 * may read the job can read them; on this machine they travel beside it (environment.h).
 *
 * Layer: cli.
 */
#pragma once

#include "cli/command/cli.h"

/* Sets it in every container of every replica, and replaces an entry of that name. Does nothing
 * without one. */
int pod_variables_set(struct cli *cli, json_t *job);
