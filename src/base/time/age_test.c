/* Checks that ages are printed as kubectl prints them, and in words. */
#include "base/time/age.h"

#include "base/testing/test.h"

static void ages_are_as_short_as_kubernetes_writes_them(void **state)
{
    (void)state;
    static const struct {
        int64_t s;
        const char *text;
    } table[] = {
        {-5, "<invalid>"}, {0, "0s"},      {119, "119s"},    {120, "2m"},         {187, "3m7s"},
        {600, "10m"},      {601, "10m"},   {10799, "179m"},  {10800, "3h"},       {11100, "3h5m"},
        {18720, "5h12m"},  {28800, "8h"},  {32400, "9h"},    {172800, "2d"},      {176400, "2d1h"},
        {691200, "8d"},    {777600, "9d"}, {63072000, "2y"}, {69120000, "2y70d"},
    };
    char text[AGE_BYTES];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_string_equal(age_text(table[i].s * 1000, text), table[i].text);
    }
    assert_string_equal(age_text(-500, text), "0s");
}

static void stamps_have_an_age(void **state)
{
    (void)state;
    char text[AGE_BYTES];
    assert_string_equal(age_since("1970-01-01T00:02:00Z", 180000, text), "60s");
    assert_string_equal(age_since("1970-01-01T00:02:00Z", 0, text), "0s");
    assert_string_equal(age_since("nonsense", 0, text), "<unknown>");
}

static void sentences_have_words(void **state)
{
    (void)state;
    char text[AGE_BYTES];
    assert_string_equal(age_words(830, text), "0.8 s");
    assert_string_equal(age_words(125000, text), "2 min 5 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ages_are_as_short_as_kubernetes_writes_them),
        cmocka_unit_test(stamps_have_an_age),
        cmocka_unit_test(sentences_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
