/* The number by which the coordinator knows a process: two that one process has, as it trains and
 * works by leases, too, are alike in what says which process it is. Random: a process that is
 * started again has another one.
 *
 *     bits 0 to 47    of the process, at random
 *     bits 48 to 62   which one of that process
 *     bit 63          it works by leases
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
