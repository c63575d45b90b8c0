/* What a wrong value was probably meant to be. */
#include "job/check/hint.h"

#include "base/testing/test.h"

static void numbers_are_guessed(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        const char *text;
        const char *hint;
    } cases[] = {
        {"replicas", "two", "write 2"},
        {"replicas", "Twelve", "write 12"},
        {"replicas", "3", "remove the quotes"},
        {"replicas", "1h", "write digits only, such as 2"},
        {"activeDeadlineSeconds", "1h", "write 3600, in seconds"},
        {"activeDeadlineSeconds", "1h30m", "write 5400, in seconds"},
        {"ttlSecondsAfterFinished", "10 minutes", "write 600, in seconds"},
        {"activeDeadlineSeconds", "1 day 2 hours", "write 93600, in seconds"},
        {"activeDeadlineSeconds", "h", "write digits only, such as 2"},
        {"activeDeadlineSeconds", "999999999w", "write digits only, such as 2"},
        {"activeDeadlineSeconds", "1fortnight", "write digits only, such as 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char hint[64] = "";
        assert_true(hint_integer(cases[i].field, cases[i].text, hint, sizeof hint));
        assert_string_equal(hint, cases[i].hint);
    }
}

static void truth_is_guessed(void **state)
{
    (void)state;
    char hint[64];
    hint_boolean("Yes", hint, sizeof hint);
    assert_string_equal(hint, "write true");
    hint_boolean("0", hint, sizeof hint);
    assert_string_equal(hint, "write false");
    hint_boolean("perhaps, or perhaps not", hint, sizeof hint);
    assert_string_equal(hint, "write true or false");
}

static void quantities_are_guessed(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"4GB", "did you mean 4G?"},
        {"4 gib", "did you mean 4Gi?"},
        {"2 cores", "did you mean 2?"},
        {"512MB", "did you mean 512M?"},
        {"1.5 GB", "did you mean 1.5G?"},
        {"64K", "did you mean 64k?"},
        {"500 millicores", "did you mean 500m?"},
        {"some", ""},
        {"", ""},
        {"4furlongs", ""},
        {"1.2.3GB", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char hint[64] = "";
        bool known = hint_quantity(cases[i][0], hint, sizeof hint);
        assert_int_equal(known, *cases[i][1] != '\0');
        assert_string_equal(known ? hint : "", cases[i][1]);
    }
}

static void commands_are_split(void **state)
{
    (void)state;
    char hint[64], small[16];
    assert_true(hint_words("sh -c 'echo \"a b\"'", hint, sizeof hint));
    assert_string_equal(hint, "write [\"sh\", \"-c\", \"echo \\\"a b\\\"\"]");
    assert_false(hint_words("an open ' quote", hint, sizeof hint));
    assert_false(hint_words("", hint, sizeof hint));
    assert_false(hint_words("longer than there is room for", small, sizeof small));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_guessed),
        cmocka_unit_test(truth_is_guessed),
        cmocka_unit_test(quantities_are_guessed),
        cmocka_unit_test(commands_are_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
