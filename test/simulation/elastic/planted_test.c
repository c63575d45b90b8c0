/* Each mistake that some draft of the protocol had is found when it is compiled in again: by the
 * first random schedule that meets it. Without one, none of these seeds finds anything
 * (random_test.c). */
#include "base/testing/test.h"
#include "commit/planted.h"
#include "schedule.h"

enum planted planted;

enum { SEEDS = 100000 };

/* Returns the seed that found it; 0: none did. */
static uint64_t seek(enum planted mistake)
{
    static struct schedule schedule;
    planted = mistake;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        schedule_run(seed, &schedule);
        if (schedule.broken) {
            print_message("seed %llu: %s\n", (unsigned long long)seed, schedule.broken);
            return seed;
        }
    }
    return 0;
}

#define FINDS(mistake)                                                                             \
    static void finds_##mistake(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        assert_true(seek(PLANTED_##mistake) > 0);                                                  \
    }
FINDS(RESTORE_NOT_JOURNALED)
FINDS(RESTORE_NEEDS_REPORT)
FINDS(COMMIT_IF_APPLIED)
FINDS(IDS_IN_BARRIER)
FINDS(LATE_COMPLETION)
FINDS(EARLY_GRANTS)
FINDS(REPORT_REPLACES_LEASES)
FINDS(OPEN_BEFORE_JOURNAL)
FINDS(UNLOADED_VOTE)
FINDS(RESTORE_KEEPS_LOG)
FINDS(OLD_GRANTS)
FINDS(ACK_BEFORE_JOURNAL)
FINDS(EXIT_BEFORE_ACK)
FINDS(STEP_DISCARDED)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_RESTORE_NOT_JOURNALED),
        cmocka_unit_test(finds_RESTORE_NEEDS_REPORT),
        cmocka_unit_test(finds_COMMIT_IF_APPLIED),
        cmocka_unit_test(finds_IDS_IN_BARRIER),
        cmocka_unit_test(finds_LATE_COMPLETION),
        cmocka_unit_test(finds_EARLY_GRANTS),
        cmocka_unit_test(finds_REPORT_REPLACES_LEASES),
        cmocka_unit_test(finds_OPEN_BEFORE_JOURNAL),
        cmocka_unit_test(finds_UNLOADED_VOTE),
        cmocka_unit_test(finds_RESTORE_KEEPS_LOG),
        cmocka_unit_test(finds_OLD_GRANTS),
        cmocka_unit_test(finds_ACK_BEFORE_JOURNAL),
        cmocka_unit_test(finds_EXIT_BEFORE_ACK),
        cmocka_unit_test(finds_STEP_DISCARDED),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
