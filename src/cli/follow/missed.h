/* A job that was over and deleted (a TTL of 0) before it could be followed.
 *
 * Layer: cli. Ownership: a new reference.
 */
#pragma once

#include "cli/command/cli.h"

/* {"job", "pods", …} as the history has the job of that uid; NULL: it does not, or cannot be asked.
 */
json_t *missed_find(struct cli *cli, const char *namespace, const char *name, const char *uid);
