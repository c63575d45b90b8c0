/* Random orders of events: a seed says which job it is, and what happens next each time.
 *
 * Tests only.
 */
#pragma once

#include "world.h"

enum { SCHEDULE_MAX = 3000 };

struct schedule {
    struct world_config config;
    const char *broken;
    size_t count;
    struct action actions[SCHEDULE_MAX];
};

/* Runs a job of up to 3 workers and 2 joiners, 6 records, 5 faults. */
void schedule_run(uint64_t seed, struct schedule *ret);

/* Shortens a schedule that violates an invariant, as long as it still violates one. Actions that
 * cannot happen are left out; after the last one, other possible actions happen until the end. */
void schedule_shrink(struct schedule *schedule);
