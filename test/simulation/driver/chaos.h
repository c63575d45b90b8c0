/* The driver in a cluster that misbehaves at random: old views, lost answers, crashes of the
 * driver, users who suspend, scale and delete, strangers who take names.
 *
 * Tests only.
 */
#pragma once

#include "fake.h"

/* A job called "case". */
json_t *chaos_make_job(int master, int workers, const char *restart, const char *policy);

/* Until nothing is due before that. */
void chaos_settle(struct fake *fake, int64_t until_ms);

/* All of it by one seed: NULL, or what is wrong; static text. `tell`: prints the objects then.
 * `resync_ms`: of the driver; 0: none. */
const char *chaos_run(uint64_t seed, int64_t resync_ms, bool tell);
