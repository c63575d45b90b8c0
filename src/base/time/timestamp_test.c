/* Checks that known instants are printed and read, and that what is printed reads the same. */
#include "base/testing/test.h"
#include "base/time/timestamp.h"

static void known_instants_print(void **state)
{
    (void)state;
    char text[TIMESTAMP_BYTES];
    assert_string_equal(timestamp_text(0, text), "1970-01-01T00:00:00Z");
    assert_string_equal(timestamp_text(951782400000, text), "2000-02-29T00:00:00Z");
    assert_string_equal(timestamp_text(1767225599999, text), "2025-12-31T23:59:59.999Z");
    assert_string_equal(timestamp_seconds(1767225599999, text), "2025-12-31T23:59:59Z");
    assert_string_equal(timestamp_text(-1, text), "1969-12-31T23:59:59.999Z");
}

static void other_spellings_are_read(void **state)
{
    (void)state;
    assert_int_equal(timestamp_read("2026-01-02T03:04:05.678901Z"), 1767323045678);
    assert_int_equal(timestamp_read("2026-01-02T04:04:05+01:00"), 1767323045000);
    assert_int_equal(timestamp_read("2026-01-02t03:04:05.5z"), 1767323045500);
}

static void what_is_no_time_is_none(void **state)
{
    (void)state;
    const char *const wrong[] = {"",
                                 "2026",
                                 "2026-13-01T00:00:00Z",
                                 "2026-01-01T24:00:00Z",
                                 "2026-01-01T00:00:00",
                                 "2026-01-01T00:00:00.Z",
                                 "2026-01-01T00:00:00Zx",
                                 "2026-01-01T00:00:00+1:00",
                                 "0000-01-01T00:00:00+00:01",
                                 "9999-12-31T23:59:60Z",
                                 "now"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_true(timestamp_read(wrong[i]) == TIMESTAMP_NONE);
    }
    assert_true(timestamp_read(NULL) == TIMESTAMP_NONE);
}

static void what_is_printed_reads_the_same(void **state)
{
    (void)state;
    char text[TIMESTAMP_BYTES];
    for (int64_t ms = -62000000000000; ms < 250000000000000; ms += 777777777777) {
        assert_int_equal(timestamp_read(timestamp_text(ms, text)), ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_instants_print),
        cmocka_unit_test(other_spellings_are_read),
        cmocka_unit_test(what_is_no_time_is_none),
        cmocka_unit_test(what_is_printed_reads_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
