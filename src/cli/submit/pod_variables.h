/* -e and --env-file for a job on a cluster: they become entries of env in its containers, which
 * everybody can read who may read the job. On this machine they are sent beside the job
 * (environment.h).
 *
 * Layer: cli.
 */
#pragma once

#include "cli/command/cli.h"

/* Sets the variables in every container of every replica, and replaces entries of the same names.
 * Does nothing if there are none. */
int pod_variables_set(struct cli *cli, json_t *job);
