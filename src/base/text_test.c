/* Checks that text is cut between characters, never within one, and how words are compared. */
#include "base/testing/test.h"
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

static void compares_numbers(void **state)
{
    (void)state;
    assert_true(text_compare_numbers("9", "10") < 0);
    assert_true(text_compare_numbers("10", "9") > 0);
    assert_true(text_compare_numbers("", "0") < 0);
    assert_int_equal(text_compare_numbers("99999999999999999999", "99999999999999999999"), 0);
}

static void knows_what_is_utf8(void **state)
{
    (void)state;
    assert_true(text_is_utf8("", 0));
    assert_true(text_is_utf8("a\xc3\xa4\xf0\x9f\x94\xa5\0z", 9));
    assert_false(text_is_utf8("a\xff", 2));
    assert_false(text_is_utf8("\xc3", 1));
    assert_false(text_is_utf8("\xc0\x80", 2));
    assert_false(text_is_utf8("\xed\xa0\x80", 3));
}

static void nearest_word_is_meant(void **state)
{
    (void)state;
    static const char *const words[] = {"get", "delete", "describe", "logs"};
    assert_string_equal(text_nearest("delte", words, 4), "delete");
    assert_string_equal(text_nearest("log", words, 4), "logs");
    assert_string_equal(text_nearest("gte", words, 4), "get");
    static const char *const flags[] = {"num_workers"};
    assert_string_equal(text_nearest("workers", flags, 1), "num_workers");
    static const char *const names[] = {"yaml", "job_name", "image_name"};
    assert_string_equal(text_nearest("name", names, 3), "job_name");
    assert_string_equal(text_nearest("Delete", words, 4), "delete");
    assert_null(text_nearest("xyzzy", words, 4));
    assert_null(text_nearest("a-word-that-is-much-too-long-to-be-any-of-them", words, 4));
}

static void knows_a_name_from_the_beginning_of_another(void **state)
{
    (void)state;
    assert_true(text_has_name("rank 1 (a-worker-1) exited", "a-worker-1"));
    assert_false(text_has_name("rank 10 (a-worker-10) exited", "a-worker-1"));
    assert_true(text_has_name("a-worker-10, a-worker-1.", "a-worker-1"));
    assert_false(text_has_name("a-worker-1-x", "a-worker-1"));
    assert_false(text_has_name("", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(copies_what_fits),
        cmocka_unit_test(compares_numbers),
        cmocka_unit_test(knows_what_is_utf8),
        cmocka_unit_test(nearest_word_is_meant),
        cmocka_unit_test(knows_a_name_from_the_beginning_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
