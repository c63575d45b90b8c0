/* Random jobs under random faults, and the way of the first that violates an invariant, made short.
 *
 * MUSTER_SEED=n runs that one alone, MUSTER_SIMULATIONS=n that many. */
#include "base/testing/test.h"
#include "base/testing/test_seeds.h"
#include "explore.h"
#include "schedule.h"

#include <stdlib.h>

enum { RUNS = 20000 };

static void run_seed(uint64_t seed)
{
    static struct schedule schedule;
    schedule_run(seed, &schedule);
    if (schedule.broken) {
        schedule_shrink(&schedule);
        explore_print(schedule.actions, schedule.count, schedule.broken);
        fail_msg("MUSTER_SEED=%llu: %s, in %zu actions of %u processes, %u records",
                 (unsigned long long)seed, schedule.broken, schedule.count,
                 schedule.config.processes, schedule.config.records);
    }
}

static void every_random_schedule_ends_well(void **state)
{
    (void)state;
    test_each_seed(RUNS, run_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_random_schedule_ends_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
