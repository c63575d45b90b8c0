/* An error that comes from a limit names the limit. */
#include "base/system/error_text.h"
#include "base/testing/test.h"

#include <errno.h>
#include <string.h>

static void the_limit_is_named(void **state)
{
    (void)state;
    assert_non_null(strstr(error_text(EMFILE), "ulimit -n"));
    assert_non_null(strstr(error_text_start(EMFILE), "ulimit -n"));
    assert_non_null(strstr(error_text_start(EAGAIN), "ulimit -u"));
}

static void others_are_what_the_system_says(void **state)
{
    (void)state;
    assert_string_equal(error_text(ENOENT), "No such file or directory");
    assert_string_equal(error_text(EAGAIN), "Resource temporarily unavailable");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_is_named),
        cmocka_unit_test(others_are_what_the_system_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
