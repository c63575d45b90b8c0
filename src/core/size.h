/* Comparison of sizes. Layer: core. Pure. */
#pragma once

#include <stddef.h>

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}
