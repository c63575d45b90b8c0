/* Options that would have no effect on what is submitted are errors that say why.
 *
 * Layer: cli; reads the objects, changes nothing.
 */
#pragma once

#include "cli/submit/objects.h"

/* For run, before its file is read: what --dry-run leaves without effect. */
int effect_check_dry_run(struct cli *cli);

/* For run, create and apply: the objects are as they will be submitted, but for the annotations. */
int effect_check(struct cli *cli, const struct objects *objects);
