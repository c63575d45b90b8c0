/* Checks how quantities are read, as numbers and in thousandths. */
#include "base/quantity.h"

#include "base/testing/test.h"

static const struct {
    const char *text;
    double value;  /* -1: none */
    int64_t milli; /* -1: none, or it does not fit */
} cases[] = {
    {"0", 0, 0},
    {"1", 1, 1000},
    {"2", 2, 2000},
    {"500m", 0.5, 500},
    {"250m", 0.25, 250},
    {"1.5", 1.5, 1500},
    {".5", 0.5, 500},
    {"5.", 5, 5000},
    {"+1", 1, 1000},
    {"1k", 1000, 1000000},
    {"1.5k", 1500, 1500000},
    {"1Ki", 1024, 1024000},
    {"128Mi", 134217728, 134217728000},
    {"1Gi", 1073741824, 1073741824000},
    {"2e3", 2000, 2000000},
    {"1E2", 100, 100000},
    {"1E-3", 0.001, 1},
    {"1u", 1e-6, 1},
    {"100n", 100 * 1e-9, 1},
    {"0.0001", 0.0001, 1},
    {"0.1", 0.1, 100},
    {"1e-99", 1e-99, 1},
    {"0e99", 0, 0},
    {"9P", 9e15, 9000000000000000000},
    {"1E", 1e18, -1},
    {"1Ei", 0x1p60, -1},
    {"1e99", 1e99, -1},
    {"9999999999Ti", 9999999999 * 0x1p40, -1},
    {"99999999999999999999", 1e20, -1},
    {"", -1, -1},
    {"m", -1, -1},
    {".", -1, -1},
    {"1 Gi", -1, -1},
    {"1GB", -1, -1},
    {"1gi", -1, -1},
    {"1K", -1, -1},
    {"1x", -1, -1},
    {"1e", -1, -1},
    {"1e+", -1, -1},
    {"1e1x", -1, -1},
    {"1.2.3", -1, -1},
    {"0x10", -1, -1},
    {"--1", -1, -1},
    {"inf", -1, -1},
    {"nan", -1, -1},
    {"1e999", -1, -1},
    {"11111111111111111111111111111111111111111", -1, -1},
};

static void quantities_are_numbers_with_a_suffix(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double value = -1;
        bool good = quantity_read(cases[i].text, &value);
        value = good ? value : -1;
        if (good != (cases[i].value >= 0) || value != cases[i].value) {
            fail_msg("\"%s\" is %s %g", cases[i].text, good ? "good:" : "bad", value);
        }
    }
    double value = 0;
    assert_true(quantity_read("-1", &value) && value == -1);
}

static void thousandths_are_exact_and_rounded_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (quantity_milli(cases[i].text) != cases[i].milli) {
            fail_msg("%s: %lld", cases[i].text, (long long)quantity_milli(cases[i].text));
        }
    }
    assert_int_equal(quantity_milli("-1"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities_are_numbers_with_a_suffix),
        cmocka_unit_test(thousandths_are_exact_and_rounded_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
