/* Reads which mistake a program of these tests has: MUSTER_TEST_PLANTED is its name in
 * commit/planted.h. Without the variable the program has none. */
#include "commit/planted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[PLANTED_COUNT] = {
    [PLANTED_NOTHING] = "NOTHING",
    [PLANTED_RESTORE_NOT_JOURNALED] = "RESTORE_NOT_JOURNALED",
    [PLANTED_RESTORE_NEEDS_REPORT] = "RESTORE_NEEDS_REPORT",
    [PLANTED_COMMIT_IF_APPLIED] = "COMMIT_IF_APPLIED",
    [PLANTED_IDS_IN_BARRIER] = "IDS_IN_BARRIER",
    [PLANTED_LATE_COMPLETION] = "LATE_COMPLETION",
    [PLANTED_EARLY_GRANTS] = "EARLY_GRANTS",
    [PLANTED_REPORT_REPLACES_LEASES] = "REPORT_REPLACES_LEASES",
    [PLANTED_OPEN_BEFORE_JOURNAL] = "OPEN_BEFORE_JOURNAL",
    [PLANTED_UNLOADED_VOTE] = "UNLOADED_VOTE",
    [PLANTED_RESTORE_KEEPS_LOG] = "RESTORE_KEEPS_LOG",
    [PLANTED_OLD_GRANTS] = "OLD_GRANTS",
    [PLANTED_ACK_BEFORE_JOURNAL] = "ACK_BEFORE_JOURNAL",
    [PLANTED_EXIT_BEFORE_ACK] = "EXIT_BEFORE_ACK",
    [PLANTED_STEP_DISCARDED] = "STEP_DISCARDED",
    [PLANTED_NO_COMMIT] = "NO_COMMIT",
};

enum planted planted;

__attribute__((constructor)) static void read_planted(void)
{
    const char *name = getenv("MUSTER_TEST_PLANTED");
    for (int i = 0; name && i < PLANTED_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            planted = (enum planted)i;
            return;
        }
    }
    if (name) {
        (void)fprintf(stderr, "MUSTER_TEST_PLANTED: there is no mistake %s\n", name);
        exit(64);
    }
}
