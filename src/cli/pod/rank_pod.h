/* Finds the rank that a command line names: "JOB", "JOB:RANK", or a pod. Layer: cli. */
#pragma once

#include "cli/command/cli.h"

/* "JOB:RANK" into its parts; *ret_rank is -1 without one. The caller frees *ret_name. */
int rank_pod_split(struct cli *cli, const char *word, char **ret_name, long *ret_rank);
/* Its pod; new reference. A job without a RANK means rank 0. MUSTER_ENOENT says what was looked
 * for; MUSTER_EGONE: its pod was cleaned up. */
int rank_pod_find(struct cli *cli, const char *word, json_t **ret);
