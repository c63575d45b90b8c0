/* Runs jobs and follows them, for muster run and muster train. Layer: cli. */
#pragma once

#include "cli/submit/objects.h"

/* Reads what is to be submitted; *ret holds what was read, also on failure. */
typedef int run_read(struct cli *cli, struct objects *ret, size_t *ret_jobs);

/* Creates an object that jobs use, or updates it if it exists already. */
int run_put_support(struct cli *cli, const json_t *object);
/* Checks whether an object would be accepted, before any is made (preflight.h); context: the struct
 * cli. */
int run_try(void *context, json_t *object);

/* Does everything from the objects to the last line and the exit status. */
int run_and_follow(struct cli *cli, run_read *read);
