/* Builds what `elasticdl train` and `muster train` submit: the objects of the command line, and
 * the data of this shell that goes with them.
 *
 * Layer: cli. Ownership: objects_done.
 */
#pragma once

#include "cli/submit/objects.h"

/* *ret holds what was made also when it fails: the job, after its Secret where it is for a cluster;
 * *ret_jobs: how many of them are jobs. */
int request_objects(struct cli *cli, struct objects *ret, size_t *ret_jobs);

/* --yaml FILE was given: writes the objects there, only their owner may read it (a token is in
 * them), and sets *ret. */
int request_write(struct cli *cli, bool *ret);

/* Prints on standard error and into --log_file_path. */
void request_say(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
