/* Checks the decision as a table: what was reported, and what is decided. */
#include "base/testing/test.h"
#include "commit/tally.h"

/* P3: reported, loaded, prepared at version 3. W3: reported, loaded. J3: reported, without state.
 * Capital letters: the member is alive; p, w, j: it has reported and is gone. ?: its report is
 * awaited; S: it is silent; D: it is dead, without a report. */
static enum commit_verdict decide(const char *votes, uint64_t *ret_base)
{
    struct commit_tally tally = {0};
    for (const char *at = votes; *at; at++) {
        struct commit_vote vote = {.silent = *at == 'S', .gone = strchr("Dpwj", *at) != NULL};
        if (strchr("PWJpwj", *at)) {
            vote.reported = true;
            vote.prepared = *at == 'P' || *at == 'p';
            vote.loaded = *at != 'J' && *at != 'j';
            vote.version = (uint64_t)(*++at - '0');
        }
        commit_tally_add(&tally, &vote);
    }
    *ret_base = 99;
    return commit_tally_verdict(&tally, ret_base);
}

static void decides_by_the_highest_version_and_who_prepared(void **state)
{
    (void)state;
    static const struct {
        const char *votes;
        enum commit_verdict verdict;
        uint64_t base;
    } rows[] = {
        {"W3W3", COMMIT_BASE, 3},     {"P3W3", COMMIT_BASE, 3}, /* not all: no member has passed */
        {"P3P3", COMMIT_BASE, 4},                               /* all: some member may have */
        {"P3SP3", COMMIT_BASE, 4},    {"P3D", COMMIT_BASE, 4},
        {"W3S", COMMIT_BASE, 3},      {"W4P3", COMMIT_BASE, 4}, /* one has */
        {"P3W4P3", COMMIT_BASE, 4},   {"W3J3", COMMIT_BASE, 3},
        {"P3J3", COMMIT_BASE, 3}, /* a joiner is not prepared before it has the state */
        {"w4P3", COMMIT_BASE, 4}, /* a report stays true when its sender has died */
        {"P3?", COMMIT_WAIT, 99},     {"?", COMMIT_WAIT, 99},
        {"J3S", COMMIT_WAIT, 99}, /* the silent member may have the state */
        {"S", COMMIT_WAIT, 99},       {"J3D", COMMIT_RESTORE, 99},
        {"w3J3", COMMIT_RESTORE, 99}, {"DD", COMMIT_RESTORE, 99},
        {"", COMMIT_RESTORE, 99},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t base = 0;
        enum commit_verdict verdict = decide(rows[i].votes, &base);
        if (verdict != rows[i].verdict || base != rows[i].base) {
            fail_msg("%s: verdict %d, base %llu", rows[i].votes, verdict, (unsigned long long)base);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decides_by_the_highest_version_and_who_prepared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
