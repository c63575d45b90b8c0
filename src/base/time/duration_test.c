/* Checks how durations are read, and which texts are not durations. */
#include "base/time/duration.h"

#include "base/testing/test.h"

#include <muster/err.h>

static void what_is_one(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {{"90", 90000},     {"0", 0},       {"250ms", 250},  {"1h30m", 5400000},
                {"2d", 172800000}, {"1.5s", 1500}, {"10m", 600000}, {"1m1s1ms", 61001}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ms = -1;
        assert_int_equal(duration_read(rows[i].text, &ms), 0);
        assert_int_equal(ms, rows[i].ms);
    }
}

static void what_is_none(void **state)
{
    (void)state;
    static const char *const rows[] = {"",    "soon", "-1s",  "1x", "1s soon",
                                       "nan", "inf",  "1e99", "s"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ms = 7;
        assert_int_equal(duration_read(rows[i], &ms), MUSTER_EDATA);
        assert_int_equal(ms, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_one),
                                       cmocka_unit_test(what_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
