/* Three members, and any two faults; two members, and any three: every order of events. Heavy: six
 * and four million worlds, half a minute. By hand (CMakeLists.txt): `any_two_test 2` of three
 * members with two records, eighteen million worlds, 82 s of processor time and 512 MiB;
 * `any_two_test leave` with members that leave among the faults, eleven million, 65 s and 256 MiB,
 * and, of those that leave or are killed alone, two with two records, and all three: 0.85 million.
 */
#include "explore_test.h"

#include <string.h>

static void explore_kinds(uint8_t members, uint8_t records, uint8_t faults, uint8_t kinds,
                          size_t room)
{
    const struct world_config config = formed_members(members, records, faults, kinds);
    explore_all(&config, room);
}

static void explore_any(uint8_t members, uint8_t records, uint8_t faults, size_t room)
{
    explore_kinds(members, records, faults, FAULT_ALL & ~FAULT_LEAVE, room);
}

static void three_members_and_any_two_faults(void **state)
{
    (void)state;
    explore_any(3, 1, 2, 1 << 24);
}

static void two_members_two_records_and_any_three_faults(void **state)
{
    (void)state;
    explore_any(2, 2, 3, 1 << 23);
}

static void three_members_two_records_and_any_two_faults(void **state)
{
    (void)state;
    explore_any(3, 2, 2, 1 << 26);
}

static void three_members_and_two_that_leave_or_are_killed(void **state)
{
    (void)state;
    explore_kinds(3, 1, 2, FAULT_LEAVE | FAULT_KILL, 1 << 23);
}

static void three_members_two_records_and_two_that_leave_or_are_killed(void **state)
{
    (void)state;
    explore_kinds(3, 2, 2, FAULT_LEAVE | FAULT_KILL, 1 << 23);
}

static void three_members_that_are_all_killed(void **state)
{
    (void)state;
    explore_kinds(3, 1, 3, FAULT_KILL, 1 << 20);
}

static void three_members_that_all_leave_or_are_killed(void **state)
{
    (void)state;
    explore_kinds(3, 1, 3, FAULT_LEAVE | FAULT_KILL, 1 << 23);
}

static void three_members_that_leave_among_any_two_faults(void **state)
{
    (void)state;
    explore_kinds(3, 1, 2, FAULT_ALL, 1 << 25);
}

int main(int count, char **words)
{
    const struct CMUnitTest in_ci[] = {
        cmocka_unit_test(three_members_and_any_two_faults),
        cmocka_unit_test(two_members_two_records_and_any_three_faults),
        cmocka_unit_test(three_members_and_two_that_leave_or_are_killed),
        cmocka_unit_test(three_members_that_are_all_killed),
    };
    const struct CMUnitTest by_hand[] = {
        cmocka_unit_test(three_members_two_records_and_any_two_faults),
    };
    const struct CMUnitTest leaving[] = {
        cmocka_unit_test(three_members_that_leave_among_any_two_faults),
        cmocka_unit_test(three_members_two_records_and_two_that_leave_or_are_killed),
        cmocka_unit_test(three_members_that_all_leave_or_are_killed),
    };
    const char *which = count > 1 ? words[1] : "";
    return strcmp(which, "2") == 0       ? cmocka_run_group_tests(by_hand, NULL, NULL)
           : strcmp(which, "leave") == 0 ? cmocka_run_group_tests(leaving, NULL, NULL)
                                         : cmocka_run_group_tests(in_ci, NULL, NULL);
}
