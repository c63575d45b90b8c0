/* -e and --env-file for a job on a cluster: they become entries of env in its containers, which
 * everybody can read who may read the job. On this machine they are sent beside the job
 * (environment.h).
 *
 * Layer: cli.
 */
#pragma once

#include "cli/command/cli.h"

/* Sets it in every container of every replica, and replaces an entry of that name. Does nothing
 * without one. */
int pod_variables_set(struct cli *cli, json_t *job);
