/* Indexes that have ended well: what is written is read again, and damaged texts harm nothing. */
#include "base/testing/test.h"
#include "control/status/completed.h"

static void expect(const char *text, int replicas, const char *wanted)
{
    struct control_completed c;
    struct buf out;
    buf_init(&out, 1000);
    assert_int_equal(control_completed_init(&c, replicas), 0);
    control_completed_read(&c, text);
    control_completed_write(&c, &out);
    assert_string_equal(buf_str(&out), wanted);
    buf_done(&out);
    control_completed_done(&c);
}

static void ranges_are_read_and_written(void **state)
{
    (void)state;
    expect(NULL, 4, "");
    expect("", 4, "");
    expect("0", 4, "0");
    expect("3", 4, "3");
    expect("0-3", 4, "0-3");
    expect("0,2-5,7", 9, "0,2-5,7");
    expect("0,1,2,5,6", 9, "0-2,5-6");
}

static void replicas_that_are_no_more_are_left_out(void **state)
{
    (void)state;
    expect("1-8", 4, "1-3");
    expect("4", 4, "");
    expect("0", 0, "");
    expect("0-2147483647", 3, "0-2");
    expect("99999999999999999999", 3, "");
}

static void a_damaged_text_is_read_up_to_the_damage(void **state)
{
    (void)state;
    expect("0,x,2", 4, "0");
    expect("-1", 4, "");
    expect("3-1", 4, "");
    expect("1-", 4, "");
    expect("1-2-3", 4, "");
    expect("0,,1", 4, "0");
    expect("1;2", 4, "");
    expect(" 1", 4, "");
}

static void an_index_is_added(void **state)
{
    (void)state;
    struct control_completed c;
    assert_int_equal(control_completed_init(&c, INT32_MAX), 0);
    control_completed_add(&c, 7);
    control_completed_add(&c, -1);
    control_completed_add(&c, INT32_MAX - 1);
    assert_true(control_completed_has(&c, 7));
    assert_false(control_completed_has(&c, 8));
    assert_false(control_completed_has(&c, -1));
    assert_false(control_completed_has(&c, INT32_MAX - 1));
    control_completed_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_read_and_written),
        cmocka_unit_test(replicas_that_are_no_more_are_left_out),
        cmocka_unit_test(a_damaged_text_is_read_up_to_the_damage),
        cmocka_unit_test(an_index_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
