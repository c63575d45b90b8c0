/* Checks how conditions change each other (TestUpdateJobConditions, and cases that it leaves
 * out). */
#include "control/fixture.h"
#include "control/status/condition.h"

#define EPOCH 1767225600000

static void set(json_t *status, const char *type, bool value, const char *reason, int second)
{
    const struct control_condition condition = {type, value, reason, "why"};
    assert_true(control_set(status, &condition, EPOCH + second * 1000) >= 0);
}

/* Compares the conditions with a text such as "Created Running=False Succeeded". */
static void check(const json_t *status, const char *expected)
{
    struct buf text;
    buf_init(&text, 4096);
    size_t index;
    json_t *each;
    json_array_foreach (doc_at(status, "conditions"), index, each) {
        bool is_true = strcmp(doc_text(each, "status", ""), "True") == 0;
        buf_format(&text, "%s%s%s", index ? " " : "", doc_text(each, "type", ""),
                   is_true ? "" : "=False");
    }
    assert_string_equal(buf_str(&text), expected);
    buf_done(&text);
}

static void the_new_one_comes_last(void **state)
{
    (void)state;
    json_t *status = json_object();
    set(status, "Created", true, "PyTorchJobCreated", 0);
    set(status, "Running", true, "PyTorchJobRunning", 1);
    check(status, "Created Running");
    set(status, "Restarting", true, "PyTorchJobRestarting", 2);
    check(status, "Created Restarting");
    set(status, "Running", true, "PyTorchJobRunning", 3);
    check(status, "Created Running");
    set(status, "Succeeded", true, "PyTorchJobSucceeded", 4);
    check(status, "Created Running=False Succeeded");
    json_decref(status);
}

static void the_end_also_ends_restarting(void **state)
{
    (void)state;
    json_t *status = json_object();
    set(status, "Restarting", true, "PyTorchJobRestarting", 0);
    set(status, "Failed", true, "PyTorchJobFailed", 5);
    check(status, "Restarting=False Failed");
    assert_string_equal(doc_text(status, "conditions.0.lastTransitionTime", ""),
                        "2026-01-01T00:00:05Z");
    assert_string_equal(doc_text(status, "conditions.0.reason", ""), "PyTorchJobRestarting");
    json_decref(status);
}

static void nothing_comes_after_failed(void **state)
{
    (void)state;
    json_t *status = json_object();
    set(status, "Failed", true, "PyTorchJobFailed", 0);
    set(status, "Succeeded", true, "PyTorchJobSucceeded", 1);
    check(status, "Failed");
    json_decref(status);
}

static void the_same_again_changes_nothing(void **state)
{
    (void)state;
    json_t *status = json_object();
    set(status, "Running", true, "PyTorchJobRunning", 0);
    const struct control_condition again = {"Running", true, "PyTorchJobRunning", "another text"};
    assert_int_equal(control_set(status, &again, EPOCH + 9000), 0);
    assert_string_equal(doc_text(status, "conditions.0.message", ""), "why");
    json_decref(status);
}

static void a_new_reason_keeps_the_time_of_the_turn(void **state)
{
    (void)state;
    json_t *status = json_object();
    set(status, "Suspended", true, "PyTorchJobSuspended", 0);
    set(status, "Suspended", true, "Other", 7);
    assert_string_equal(doc_text(status, "conditions.0.lastTransitionTime", ""),
                        "2026-01-01T00:00:00Z");
    assert_string_equal(doc_text(status, "conditions.0.lastUpdateTime", ""),
                        "2026-01-01T00:00:07Z");
    set(status, "Suspended", false, "PyTorchJobResumed", 8);
    check(status, "Suspended=False");
    assert_string_equal(doc_text(status, "conditions.0.lastTransitionTime", ""),
                        "2026-01-01T00:00:08Z");
    json_decref(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_new_one_comes_last),
        cmocka_unit_test(the_end_also_ends_restarting),
        cmocka_unit_test(nothing_comes_after_failed),
        cmocka_unit_test(the_same_again_changes_nothing),
        cmocka_unit_test(a_new_reason_keeps_the_time_of_the_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
