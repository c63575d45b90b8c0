/* Refuses options that would have no effect on what is submitted; the error says why.
 *
 * Layer: cli; reads the objects, changes nothing.
 */
#pragma once

#include "cli/submit/objects.h"

/* For run, before its file is read: checks for options that have no effect with --dry-run. */
int effect_check_dry_run(struct cli *cli);

/* For run, create and apply: checks for options that have no effect on the objects, which are as
 * they will be submitted, except for the annotations. */
int effect_check(struct cli *cli, const struct objects *objects);
