/* Refuses options that would have no effect on what is submitted; the error says why.
 *
 * Layer: cli; reads the objects, changes nothing.
 */
#pragma once

#include "cli/submit/objects.h"

/* Checks, for run, before its file is read: options that have no effect with --dry-run. */
int effect_check_dry_run(struct cli *cli);

/* Checks, for run, create and apply: the objects are as they will be submitted, except for the
 * annotations. */
int effect_check(struct cli *cli, const struct objects *objects);
