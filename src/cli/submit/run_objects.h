/* Builds what muster run submits: the objects of the command line or of its files, read, checked
 * and changed by its options.
 *
 * Layer: cli. Ownership: objects_done.
 */
#pragma once

#include "cli/submit/objects.h"

/* *ret holds what was read, also on failure; *ret_jobs is the number of jobs in it. */
int run_objects_read(struct cli *cli, struct objects *ret, size_t *ret_jobs);

/* Applies --timeout. */
int run_objects_set_deadline(struct cli *cli, json_t *job);

/* For --dry-run: prints the objects on standard output in `format` ("yaml", "json"), and what the
 * file lacks on standard error. */
int run_objects_print(struct cli *cli, const struct objects *objects, const char *format);
