/* Checks how amounts of memory are printed. */
#include "base/memory_text.h"

#include "base/testing/test.h"

static void each_size_has_its_unit(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } table[] = {
        {0, "0.0 MiB"},
        {3670016, "3.5 MiB"},
        {64 << 20, "64 MiB"},
        {INT64_C(9) << 30, "9216 MiB"},
        {INT64_C(25) << 29, "12.5 GiB"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[MEMORY_TEXT_BYTES];
        assert_string_equal(memory_text(table[i].bytes, text), table[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_size_has_its_unit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
