/* The driver in a cluster that misbehaves at random: old views, lost answers, crashes of the
 * driver, users who suspend, scale and delete, strangers who take names.
 *
 * Tests only.
 */
#pragma once

#include "fake.h"

/* Makes a job called "case". */
json_t *chaos_make_job(int master, int workers, const char *restart, const char *policy);

/* Steps until nothing is due before `until_ms`. */
void chaos_settle(struct fake *fake, int64_t until_ms);

/* Runs everything that a seed decides. Returns NULL, or what is wrong; static text. `tell`: prints
 * the objects in that case. `resync_ms`: the driver's; 0: none. */
const char *chaos_run(uint64_t seed, int64_t resync_ms, bool tell);
