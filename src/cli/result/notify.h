/* Runs the command of `run --notify CMD` at the end, for instance one that sends a message.
 *
 * Layer: cli, on the loop.
 */
#pragma once

#include "cli/command/cli.h"

enum { NOTIFY_MS = 30000 };

/* Runs `sh -c command` for each of `reports` ({"name", "state", "exitCode", "message"}), for
 * NOTIFY_MS at most, with MUSTER_JOB_NAME, MUSTER_JOB_STATE, MUSTER_JOB_EXIT_CODE and
 * MUSTER_JOB_MESSAGE in its environment and its output on standard error. A failure is only a
 * warning. If there is no report, because no job was made, the command runs once, with the state
 * Error, `name` and the sentence of cli->err, whose code is `failed`. */
void notify_all(struct cli *cli, const char *command, const json_t *reports, const char *name,
                int failed);
