/* Objects that were made for one job go with it: it is their owner, by ownerReferences.
 *
 * Layer: cli. Ownership: the caller's objects.
 */
#pragma once

#include "cli/submit/objects.h"

/* Before they are put: where they are there already, an earlier job is their owner no more, whose
 * end would take them along. */
int owner_claim(struct cli *cli, struct objects *objects);

/* Of a job that has just been created. A warning where it is refused: the job has what it needs. */
void owner_note(struct cli *cli, const struct objects *objects, const json_t *job);
