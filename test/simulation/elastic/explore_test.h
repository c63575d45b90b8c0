/* What the tests that visit all orders share.
 *
 * Tests only. Memory: explore_all's, static.
 */
#pragma once

#include "base/testing/test.h"
#include "explore.h"

/* Returns a world whose members have formed their first generation. Their messages arrive at once,
 * and they are one step ahead at most. */
static inline struct world_config formed_members(uint8_t members, uint8_t records, uint8_t faults,
                                                 uint8_t kinds)
{
    return (struct world_config){.processes = members,
                                 .records = records,
                                 .faults = faults,
                                 .kinds = kinds,
                                 .ahead = 1,
                                 .batch = 1,
                                 .formed = true,
                                 .prompt = true};
}

/* Explores all worlds, and fails with the way that breaks an invariant. room: `most` of explore. */
static inline void explore_all(const struct world_config *config, size_t room)
{
    static struct explored found;
    explore(config, room, &found);
    print_message("%llu worlds, %llu actions, %llu ends, the longest way has %zu actions\n",
                  (unsigned long long)found.worlds, (unsigned long long)found.actions,
                  (unsigned long long)found.ends, found.deepest);
    if (found.broken) {
        explore_print(found.way, found.way_count, found.broken);
        fail_msg("%s", found.broken);
    }
    assert_true(found.ends > 0);
}
