/* Random numbers for tests: the same numbers on every machine for the same seed (xorshift64*;
 * Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016).
 */
#pragma once

#include <assert.h>
#include <stdint.h>

/* Returns a number from 0 to below - 1; *random is not 0, and is changed. */
static inline uint32_t test_draw(uint64_t *random, uint32_t below)
{
    assert(*random != 0 && below > 0);
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return (uint32_t)((*random * 2685821657736338717u) >> 33) % below;
}
