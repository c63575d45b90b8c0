/* Checks the table of the member: traces of events, and the effects of each event, by the rules of
 * member.h.
 *
 * Effects are written as "ENTER 1, BARRIER 1"; a number is a version. */
#include "base/testing/test.h"
#include "commit/member.h"

#include <stdio.h>

static const char *const names[] = {
    [COMMIT_DO_JOIN] = "JOIN",     [COMMIT_DO_REPORT] = "REPORT",   [COMMIT_DO_COMMITS] = "COMMITS",
    [COMMIT_DO_LEAVE] = "LEAVE",   [COMMIT_DO_ENTER] = "ENTER",     [COMMIT_DO_BARRIER] = "BARRIER",
    [COMMIT_DO_APPLY] = "APPLY",   [COMMIT_DO_DISCARD] = "DISCARD", [COMMIT_DO_ABORT] = "ABORT",
    [COMMIT_DO_FORM] = "FORM",     [COMMIT_DO_LOAD] = "LOAD",       [COMMIT_DO_RESTORE] = "RESTORE",
    [COMMIT_DO_TRIM] = "TRIM",     [COMMIT_DO_KEEP] = "KEEP",       [COMMIT_DO_REJOIN] = "REJOIN",
    [COMMIT_DO_FINISH] = "FINISH", [COMMIT_DO_FAIL] = "FAIL",
};

static void expect(struct commit_member *m, struct commit_event event, const char *wanted)
{
    struct commit_effects effects;
    char text[256] = "";
    size_t used = 0;
    commit_member_step(m, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        const struct commit_effect *e = &effects.list[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "",
                                 names[e->kind]);
        if (e->version > 0) {
            used += (size_t)snprintf(text + used, sizeof text - used, " %d", (int)e->version);
        }
    }
    assert_string_equal(text, wanted);
    if (commit_member_check(m)) {
        fail_msg("after %s: %s", text, commit_member_check(m));
    }
}

#define EVENT(event, ...) ((struct commit_event){.kind = COMMIT_##event, __VA_ARGS__})

/* Returns a member that is in generation 1, which began with version 0, and that has the state. */
static struct commit_member working(void)
{
    struct commit_member m;
    commit_member_init(&m, 7);
    expect(&m, EVENT(CONNECTED, .term = 1), "JOIN");
    expect(&m, EVENT(OPEN, .term = 1, .generation = 1, .restore = true), "TRIM, FORM, RESTORE");
    expect(&m, EVENT(LOADED, .generation = 1), "");
    return m;
}

static struct commit_member prepared(void)
{
    struct commit_member m = working();
    expect(&m, EVENT(READY, .generation = 1), "ENTER 1");
    expect(&m, EVENT(REDUCED, .generation = 1, .version = 1), "BARRIER 1");
    assert_int_equal(m.stage, COMMIT_PREPARED);
    return m;
}

static void a_step_is_entered_prepared_and_committed(void **state)
{
    (void)state;
    struct commit_member m = prepared();
    expect(&m, EVENT(READY, .generation = 1), "");
    expect(&m, EVENT(PASSED, .generation = 1, .version = 1), "APPLY 1, COMMITS 1");
    assert_int_equal(m.version, 1);
    expect(&m, EVENT(ACK, .term = 1, .version = 1), "TRIM 1");
    expect(&m, EVENT(READY, .generation = 1), "ENTER 2");
}

static void nothing_completes_after_the_generation_was_closed(void **state) /* rule 4 */
{
    (void)state;
    struct commit_member m = prepared();
    expect(&m, EVENT(LOST, .generation = 1, .incarnation = 9), "ABORT, REPORT");
    expect(&m, EVENT(PASSED, .generation = 1, .version = 1), "");
    expect(&m, EVENT(REDUCED, .generation = 1, .version = 1), "");
    assert_int_equal(m.version, 0);
    assert_true(m.prepared);
}

static void other_generations_and_steps_are_not_heard(void **state)
{
    (void)state;
    struct commit_member m = prepared();
    expect(&m, EVENT(PASSED, .generation = 2, .version = 1), "");
    expect(&m, EVENT(PASSED, .generation = 1, .version = 2), "");
    expect(&m, EVENT(LOST, .generation = 0), "");
    expect(&m, EVENT(CLOSE, .term = 1, .generation = 2), "");
    assert_int_equal(m.stage, COMMIT_PREPARED);
}

static struct commit_member closed(void)
{
    struct commit_member m = prepared();
    expect(&m, EVENT(CLOSE, .term = 1, .generation = 1), "ABORT, REPORT");
    return m;
}

static void what_was_prepared_follows_the_decision(void **state) /* rule 7 */
{
    (void)state;
    struct commit_member m = closed();
    expect(&m, EVENT(OPEN, .term = 1, .generation = 2, .version = 1), "APPLY 1, TRIM 1, FORM");
    assert_int_equal(m.version, 1);
    m = closed();
    expect(&m, EVENT(OPEN, .term = 1, .generation = 2, .version = 0), "DISCARD 1, TRIM, FORM");
    assert_int_equal(m.version, 0);
    m = closed();
    expect(&m, EVENT(OPEN, .term = 1, .generation = 2, .version = 2), "FAIL 2");
    m = closed(); /* rule 11: no member has the state, says the coordinator, but this one has it */
    expect(&m, EVENT(OPEN, .term = 1, .generation = 2, .version = 0, .restore = true), "FAIL");
    m = closed();
    expect(&m, EVENT(OPEN, .term = 1, .generation = 1), ""); /* not a newer generation */
}

static void a_joiner_prepares_only_with_the_state(void **state) /* rule 8 */
{
    (void)state;
    struct commit_member m;
    commit_member_init(&m, 7);
    expect(&m, EVENT(CONNECTED, .term = 1), "JOIN");
    expect(&m, EVENT(OPEN, .term = 1, .generation = 5, .version = 3), "TRIM 3, FORM, LOAD 3");
    expect(&m, EVENT(READY, .generation = 5), "ENTER 4");
    expect(&m, EVENT(REDUCED, .generation = 5, .version = 4), "");
    expect(&m, EVENT(LOADED, .generation = 5, .version = 2), "");
    expect(&m, EVENT(LOADED, .generation = 5, .version = 3), "BARRIER 4");
}

static void at_a_boundary_a_step_under_way_is_finished_first(void **state) /* rule 4 */
{
    (void)state;
    struct commit_member m = prepared();
    expect(&m, EVENT(CLOSE, .term = 1, .generation = 1, .boundary = true), "");
    expect(&m, EVENT(PASSED, .generation = 1, .version = 1), "APPLY 1, COMMITS 1, ABORT, REPORT");
    m = working();
    expect(&m, EVENT(CLOSE, .term = 1, .generation = 1, .boundary = true), "ABORT, REPORT");
}

static void messages_of_an_older_term_are_not_heard(void **state) /* rule 9 */
{
    (void)state;
    struct commit_member m = closed();
    expect(&m, EVENT(GRANT, .term = 1, .incarnation = 7), "KEEP");
    expect(&m, EVENT(GRANT, .term = 1, .incarnation = 8), "");
    expect(&m, EVENT(DISCONNECTED), "");
    expect(&m, EVENT(CONNECTED, .term = 2), "REPORT");
    expect(&m, EVENT(GRANT, .term = 1, .incarnation = 7), "");
    expect(&m, EVENT(OPEN, .term = 1, .generation = 2), "");
    expect(&m, EVENT(EXPELLED, .term = 1, .incarnation = 7), "");
    expect(&m, EVENT(GRANT, .term = 2, .incarnation = 7), "KEEP");
}

static void a_member_that_is_away_closes_without_a_report(void **state)
{
    (void)state;
    struct commit_member m = prepared();
    expect(&m, EVENT(DISCONNECTED), "");
    expect(&m, EVENT(PASSED, .generation = 1, .version = 1), "APPLY 1");
    expect(&m, EVENT(LOST, .generation = 1), "ABORT");
    expect(&m, EVENT(LEAVE), "");
    expect(&m, EVENT(CONNECTED, .term = 2), "REPORT, LEAVE");
}

static void an_expelled_member_drops_all(void **state) /* rule 12 */
{
    (void)state;
    struct commit_member m = prepared();
    expect(&m, EVENT(EXPELLED, .term = 1, .incarnation = 8), "");
    expect(&m, EVENT(EXPELLED, .term = 1, .incarnation = 7), "ABORT, DISCARD 1, REJOIN");
    expect(&m, EVENT(OPEN, .term = 1, .generation = 9), "");
}

static void it_ends_well_once_all_is_acknowledged(void **state) /* rule 14 */
{
    (void)state;
    struct commit_member m = prepared();
    expect(&m, EVENT(PASSED, .generation = 1, .version = 1), "APPLY 1, COMMITS 1");
    expect(&m, EVENT(COMPLETE), "");
    expect(&m, EVENT(READY, .generation = 1), "");
    expect(&m, EVENT(ACK, .term = 1, .version = 1), "TRIM 1, LEAVE, FINISH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_entered_prepared_and_committed),
        cmocka_unit_test(nothing_completes_after_the_generation_was_closed),
        cmocka_unit_test(other_generations_and_steps_are_not_heard),
        cmocka_unit_test(what_was_prepared_follows_the_decision),
        cmocka_unit_test(a_joiner_prepares_only_with_the_state),
        cmocka_unit_test(at_a_boundary_a_step_under_way_is_finished_first),
        cmocka_unit_test(messages_of_an_older_term_are_not_heard),
        cmocka_unit_test(a_member_that_is_away_closes_without_a_report),
        cmocka_unit_test(an_expelled_member_drops_all),
        cmocka_unit_test(it_ends_well_once_all_is_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
