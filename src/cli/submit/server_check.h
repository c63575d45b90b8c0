/* Asks the API server of a cluster to check the objects of a file without making them (dryRun).
 *
 * Layer: cli.
 */
#pragma once

#include "cli/command/cli.h"
#include "job/file/file.h"

/* Adds an error, with its line, for each thing that the server refuses. Takes the contents of
 * `file`. Fails if the server does not answer, or does not accept our credentials. */
int server_check(struct cli *cli, const char *path, struct job_file *file,
                 struct job_problems *problems);
