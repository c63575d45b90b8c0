/* Checks that a buffer keeps to its maximum, and that a failed append changes nothing. */
#include "base/buf.h"
#include "base/testing/test.h"

#include <stdlib.h>

static void grows_to_its_maximum_and_no_further(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 5);
    assert_string_equal(buf_str(&b), "");
    buf_text(&b, "abc");
    buf_text(&b, "def");
    assert_true(buf_failed(&b));
    assert_string_equal(buf_str(&b), "abc");
    buf_text(&b, "d"); /* it would fit, but the buffer has failed */
    assert_string_equal(buf_str(&b), "abc");
    buf_clear(&b);
    buf_format(&b, "%d-%s", 12, "xy");
    assert_false(buf_failed(&b));
    assert_string_equal(buf_str(&b), "12-xy");
    buf_consume(&b, 3);
    assert_string_equal(buf_str(&b), "xy");
    buf_done(&b);
}

static void stealing_leaves_it_empty(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 100);
    char *nothing = buf_steal(&b);
    assert_string_equal(nothing, "");
    free(nothing);
    buf_text(&b, "mine");
    char *text = buf_steal(&b);
    assert_string_equal(text, "mine");
    assert_int_equal(b.used, 0);
    free(text);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_to_its_maximum_and_no_further),
        cmocka_unit_test(stealing_leaves_it_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
