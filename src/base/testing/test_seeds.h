/* The seeds of random tests, and the variables and arguments that choose which of them a program
 * runs. */
#pragma once

#include "base/time/clock.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEST_SEEDS_APART = 100003 };

/* Calls run() for the seeds 1 to `count`. MUSTER_SEED=N runs only that seed, MUSTER_SIMULATIONS=N
 * runs N seeds, and MUSTER_NTH_SEED=N leaves out all but every N-th of them. */
static inline void test_each_seed(uint64_t count, void (*run)(uint64_t seed))
{
    const char *one = getenv("MUSTER_SEED"), *many = getenv("MUSTER_SIMULATIONS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    uint64_t num = one ? 1 : many ? strtoull(many, NULL, 10) : count;
    const char *nth = getenv("MUSTER_NTH_SEED");
    uint64_t apart = nth ? strtoull(nth, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + num; seed += apart ? apart : 1) {
        run(seed);
    }
}

/* Reads the arguments `rounds N seed N`, each of which may be missing; the default seed is
 * different at each start. */
static inline void test_read_rounds(int argc, char **argv, unsigned *rounds, uint64_t *ret_seed)
{
    /* The seeds of programs that start at the same time are further apart than their rounds. */
    *ret_seed = ((uint64_t)clock_ms() + (uint64_t)getpid() * TEST_SEEDS_APART) % 1000000;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "rounds") == 0) {
            *rounds = (unsigned)strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "seed") == 0) {
            *ret_seed = strtoull(argv[i + 1], NULL, 10);
        }
    }
}
