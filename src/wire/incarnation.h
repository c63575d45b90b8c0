/* The number by which the coordinator knows a process. It is random: a process that is started
 * again has another one. A process that trains and also works by leases has two numbers, which are
 * equal in the bits of the process.
 *
 *     bits 0 to 47    the process: random
 *     bits 48 to 62   the index among the numbers of that process
 *     bit 63          set if the process works by leases with this number
 *
 * Layer: pure (part of libmuster).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define INCARNATION_PROCESS ((UINT64_C(1) << 48) - 1)
#define INCARNATION_NUMBER (((UINT64_C(1) << 15) - 1) << 48)
#define INCARNATION_LEASES (UINT64_C(1) << 63)

/* Whether two incarnations are of one process: they end together, and at least one of them works by
 * leases. Two that train are two workers, even if one program has both. */
static inline bool incarnation_is_beside(uint64_t one, uint64_t other)
{
    return one != other && ((one ^ other) & INCARNATION_PROCESS) == 0 &&
           ((one | other) & INCARNATION_LEASES) != 0;
}
