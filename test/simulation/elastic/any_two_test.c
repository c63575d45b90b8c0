/* Three members, and any two faults; two members, and any three: every order of events. Heavy: six
 * and four million worlds, half a minute. Three members with two records are eighteen million,
 * 82 s of processor time and 512 MiB, and run by hand: `any_two_test 2` (CMakeLists.txt). */
#include "base/testing/test.h"
#include "explore.h"

#include <string.h>

static void explore_all(uint8_t members, uint8_t records, uint8_t faults, size_t room)
{
    static struct explored found;
    const struct world_config config = {.processes = members,
                                        .records = records,
                                        .faults = faults,
                                        .kinds = FAULT_ALL & ~FAULT_LEAVE,
                                        .ahead = 1,
                                        .batch = 1,
                                        .formed = true,
                                        .prompt = true};
    explore(&config, room, &found);
    print_message("%llu worlds, %llu actions, %llu ends, the longest way has %zu actions\n",
                  (unsigned long long)found.worlds, (unsigned long long)found.actions,
                  (unsigned long long)found.ends, found.deepest);
    if (found.broken) {
        explore_print(found.way, found.way_count, found.broken);
        fail_msg("%s", found.broken);
    }
    assert_true(found.ends > 0);
}

static void three_members_and_any_two_faults(void **state)
{
    (void)state;
    explore_all(3, 1, 2, 1 << 24);
}

static void two_members_two_records_and_any_three_faults(void **state)
{
    (void)state;
    explore_all(2, 2, 3, 1 << 23);
}

static void three_members_two_records_and_any_two_faults(void **state)
{
    (void)state;
    explore_all(3, 2, 2, 1 << 26);
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
