/* Finds the rank that a command line names: "JOB", "JOB:RANK", or a pod. Layer: cli. */
#pragma once

#include "cli/command/cli.h"

/* Splits "JOB:RANK" into its parts; *ret_rank is -1 without a rank. The caller frees *ret_name. */
int rank_pod_split(struct cli *cli, const char *word, char **ret_name, long *ret_rank);
/* Finds the rank's pod; new reference. A job without a RANK means rank 0. MUSTER_ENOENT says what
 * was looked for; MUSTER_EGONE: the pod was cleaned up. */
int rank_pod_find(struct cli *cli, const char *word, json_t **ret);
