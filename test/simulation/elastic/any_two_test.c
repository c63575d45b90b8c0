/* Three members, and any two faults; two members, and any three: every order of events. Heavy: six
 * and four million worlds, half a minute. Three members with two records are eighteen million,
 * 82 s of processor time and 512 MiB, and run by hand: `any_two_test 2` (CMakeLists.txt). */
#include "explore_test.h"

#include <string.h>

static void explore_any(uint8_t members, uint8_t records, uint8_t faults, size_t room)
{
    const struct world_config config =
        formed_members(members, records, faults, FAULT_ALL & ~FAULT_LEAVE);
    explore_all(&config, room);
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

int main(int count, char **words)
{
    const struct CMUnitTest in_ci[] = {
        cmocka_unit_test(three_members_and_any_two_faults),
        cmocka_unit_test(two_members_two_records_and_any_three_faults),
    };
    const struct CMUnitTest by_hand[] = {
        cmocka_unit_test(three_members_two_records_and_any_two_faults),
    };
    return count > 1 && strcmp(words[1], "2") == 0 ? cmocka_run_group_tests(by_hand, NULL, NULL)
                                                   : cmocka_run_group_tests(in_ci, NULL, NULL);
}
