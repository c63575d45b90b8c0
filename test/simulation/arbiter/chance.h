/* A random elastic job under random faults: shape, order and faults follow from the seed.
 *
 * Tests only. Memory: job_done. Thread: one.
 */
#pragma once

#include "job.h"

/* Returns NULL, or the first invariant that was violated. tells: prints each action. */
const char *chance_run(struct job *job, uint64_t seed, bool tells);
