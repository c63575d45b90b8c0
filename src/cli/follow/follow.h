/* Follows jobs to their end: watches, logs, progress, signals.
 *
 * Layer: cli, on the loop. Ownership: init/done; run the loop once more after done.
 */
#pragma once

#include "cli/follow/followed.h"

void follow_init(struct follow *follow, struct cli *cli, struct screen *screen, bool quiet);

/* Adds a job, as the API returned it when it was created. */
int follow_add(struct follow *follow, const json_t *job, bool several);

/* Follows until all jobs have ended, their ranks have ended and their logs are read, or a second
 * signal has killed them. Signals are caught meanwhile. */
void follow_run(struct follow *follow);
void follow_done(struct follow *follow);
