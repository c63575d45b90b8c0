/* The search of all orders also finds each mistake in the worlds of any_two_test.c, whose messages
 * arrive at once, and which are distinguished by hashes. These shortcuts of the search hide no
 * mistake. */
#include "commit/planted.h"
#include "explore_test.h"

enum planted planted;

enum { ROOM = 1 << 20 };

/* Some mistakes show only if no process with the model is left. */
static const struct world_config one_relaunched = {.processes = 1,
                                                   .records = 2,
                                                   .faults = 2,
                                                   .kinds = FAULT_ALL,
                                                   .ahead = 1,
                                                   .batch = 1,
                                                   .checkpoints = 1,
                                                   .relaunch = true,
                                                   .formed = true,
                                                   .prompt = true};

static const char *seek(enum planted mistake, const struct world_config *config)
{
    static struct explored found;
    planted = mistake;
    explore(config, ROOM, &found);
    print_message("mistake %d: %llu worlds, %s\n", mistake, (unsigned long long)found.worlds,
                  found.broken ? found.broken : "nothing found");
    return found.broken;
}

static void each_mistake_is_found(void **state)
{
    (void)state;
    for (int mistake = PLANTED_NOTHING + 1; mistake < PLANTED_NO_COMMIT; mistake++) {
        bool restores = mistake == PLANTED_RESTORE_NOT_JOURNALED;
        const struct world_config two_members = formed_members(2, 2, 2, FAULT_ALL & ~FAULT_LEAVE);
        const char *broken = seek((enum planted)mistake, restores ? &one_relaunched : &two_members);
        assert_non_null(broken);
        assert_string_not_equal(broken, "the worlds can be counted");
    }
}

static void without_a_mistake_nothing_is_found(void **state)
{
    (void)state;
    const struct world_config two_members = formed_members(2, 2, 2, FAULT_ALL & ~FAULT_LEAVE);
    assert_null(seek(PLANTED_NOTHING, &two_members));
    assert_null(seek(PLANTED_NOTHING, &one_relaunched));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mistake_is_found),
        cmocka_unit_test(without_a_mistake_nothing_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
