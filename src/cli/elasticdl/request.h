/* Builds what `elasticdl train` and `muster train` submit: the objects of the command line, and
 * the data of this shell that goes with them.
 *
 * Layer: cli. Ownership: objects_done.
 */
#pragma once

#include "cli/submit/objects.h"

/* *ret holds what was made, also on failure: the job, after its Secret if it is for a cluster.
 * *ret_jobs is the number of jobs in it. */
int request_objects(struct cli *cli, struct objects *ret, size_t *ret_jobs);

/* If --yaml FILE is given, writes the objects to the file and sets *ret. Only the file's owner may
 * read it, because it has a token. */
int request_write(struct cli *cli, bool *ret);

/* Prints on standard error and into --log_file_path. */
void request_say(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
