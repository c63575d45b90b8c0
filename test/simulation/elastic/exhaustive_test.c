/* Every order of events, with every fault at every place, for jobs that are small enough: no
 * invariant is violated, there is no cycle, and each way comes to a proper end.
 *
 * The numbers of worlds are those of the present protocol, and change with it.
 */
#include "explore_test.h"

enum { CRASHES = FAULT_ALL & ~FAULT_LEAVE };

static void one_process_and_two_faults(void **state)
{
    (void)state;
    const struct world_config config = {.processes = 1,
                                        .records = 2,
                                        .faults = 2,
                                        .kinds = FAULT_ALL,
                                        .ahead = 2,
                                        .batch = 1,
                                        .checkpoints = 1,
                                        .relaunch = true};
    explore_all(&config, 1 << 22);
}

static void two_members_two_records_and_two_faults(void **state)
{
    (void)state;
    const struct world_config config = formed_members(2, 2, 2, CRASHES);
    explore_all(&config, 1 << 22);
}

static void three_members_two_records_and_one_fault(void **state)
{
    (void)state;
    const struct world_config config = formed_members(3, 2, 1, CRASHES);
    explore_all(&config, 1 << 22);
}

static void three_members_two_of_which_are_killed(void **state)
{
    (void)state;
    const struct world_config config = formed_members(3, 2, 2, FAULT_KILL);
    explore_all(&config, 1 << 22);
}

static void three_members_one_killed_and_the_coordinator_crashes(void **state)
{
    (void)state;
    const struct world_config config = formed_members(3, 1, 2, FAULT_KILL | FAULT_CRASH);
    explore_all(&config, 1 << 22);
}

static void two_members_a_joiner_and_one_fault(void **state)
{
    (void)state;
    struct world_config config = formed_members(3, 2, 1, CRASHES);
    config.joiners = 1;
    explore_all(&config, 1 << 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process_and_two_faults),
        cmocka_unit_test(two_members_two_records_and_two_faults),
        cmocka_unit_test(three_members_two_records_and_one_fault),
        cmocka_unit_test(three_members_two_of_which_are_killed),
        cmocka_unit_test(three_members_one_killed_and_the_coordinator_crashes),
        cmocka_unit_test(two_members_a_joiner_and_one_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
