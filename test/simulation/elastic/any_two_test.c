/* Three members, and any two faults: every order of events. Heavy: some four million worlds. */
#include "base/testing/test.h"
#include "explore.h"

static void three_members_and_any_two_faults(void **state)
{
    (void)state;
    static struct explored found;
    const struct world_config config = {.processes = 3,
                                        .records = 1,
                                        .faults = 2,
                                        .kinds = FAULT_ALL & ~FAULT_LEAVE,
                                        .ahead = 1,
                                        .batch = 1,
                                        .formed = true,
                                        .prompt = true};
    explore(&config, 1 << 24, &found);
    print_message("%llu worlds\n", (unsigned long long)found.worlds);
    if (found.broken) {
        explore_print(found.way, found.way_count, found.broken);
        fail_msg("%s", found.broken);
    }
    assert_true(found.ends > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_members_and_any_two_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
