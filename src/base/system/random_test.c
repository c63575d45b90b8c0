/* Checks that random bytes and digits fill exactly the memory that they should, and differ. */
#include "base/system/random.h"
#include "base/testing/test.h"

#include <string.h>

static void digits_are_whole_and_differ(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    char first[2 * RANDOM_HEX_MAX + 1], second[sizeof first];
    memset(first, '#', sizeof first);
    assert_int_equal(random_hex(first, RANDOM_HEX_MAX, &err), 0);
    assert_int_equal(random_hex(second, RANDOM_HEX_MAX, &err), 0);
    assert_int_equal(strspn(first, "0123456789abcdef"), sizeof first - 1);
    assert_int_equal(strlen(first), sizeof first - 1);
    assert_string_not_equal(first, second);
}

static void nothing_is_written_behind_what_is_asked_for(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    unsigned char bytes[17] = {0};
    bytes[16] = 0xa5;
    assert_int_equal(random_bytes(bytes, 16, &err), 0);
    assert_int_equal(bytes[16], 0xa5);
    assert_true(memcmp(bytes, (unsigned char[16]){0}, 16) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_whole_and_differ),
        cmocka_unit_test(nothing_is_written_behind_what_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
