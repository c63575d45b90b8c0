/* Makes a job the owner of objects that were made for it (ownerReferences), so that they are
 * deleted with it.
 *
 * Layer: cli. Ownership: the caller's objects.
 */
#pragma once

#include "cli/submit/objects.h"

/* Called before objects are put: an object that exists already loses the earlier job as its owner,
 * so that it is not deleted with that job. */
int owner_claim(struct cli *cli, struct objects *objects);

/* Makes a job that has just been created the owner. A refusal is a warning: the job has what it
 * needs. */
void owner_note(struct cli *cli, const struct objects *objects, const json_t *job);
