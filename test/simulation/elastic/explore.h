/* Visits every world that can follow from one world, in any order of events: depth first, each
 * world once.
 *
 * The graph must have no cycle, and no leaf that is not a proper end: then every way ends well.
 * Worlds are distinguished by a hash of 64 bits; among ten million worlds, two are taken for the
 * same one with a probability of 3 in a million.
 *
 * Tests only. Memory: 8 bytes for each world, up to a limit, freed at the end.
 */
#pragma once

#include "world.h"

enum { WAY_MAX = 600 };

struct explored {
    uint64_t worlds;
    uint64_t actions; /* actions that led to a world, new or not */
    uint64_t ends;
    size_t deepest;
    const char *broken; /* NULL: all invariants held */
    size_t way_count;   /* from the first world to the one that breaks an invariant */
    struct action way[WAY_MAX];
};

/* most: room for worlds, a power of two, at least twice as large as the expected number. */
void explore(const struct world_config *config, size_t most, struct explored *ret);

/* Prints the way to standard error, a line for each action. */
void explore_print(const struct action *way, size_t count, const char *broken);
