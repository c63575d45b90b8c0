/* Cuts between characters, never within one. */
#include "base/test.h"
#include "base/text.h"

static void cuts_between_characters(void **state)
{
    (void)state;
    assert_int_equal(text_cut("", 4), 0);
    assert_int_equal(text_cut("abc", 4), 3);
    assert_int_equal(text_cut("abcd", 4), 4);
    assert_int_equal(text_cut("abcde", 4), 4);
    assert_int_equal(text_cut("ab\xc3\xa4z", 3), 2);
    assert_int_equal(text_cut("ab\xc3\xa4z", 4), 4);
    assert_int_equal(text_cut("\xf0\x9f\x94\xa5", 3), 0);
}

static void copies_what_fits(void **state)
{
    (void)state;
    char to[4];
    text_copy(to, sizeof to, "abcdef");
    assert_string_equal(to, "abc");
    text_copy(to, sizeof to, "ab\xc3\xa4");
    assert_string_equal(to, "ab");
    text_copy(to, sizeof to, NULL);
    assert_string_equal(to, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(copies_what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
