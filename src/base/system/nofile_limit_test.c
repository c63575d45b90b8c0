/* Checks that the limit of open files is raised for muster, and restored for the user's
 * programs. */
#include "base/system/nofile_limit.h"
#include "base/testing/test.h"

#include <sys/resource.h>

static struct rlimit limit_now(void)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit;
}

static void what_was_raised_is_restored(void **state)
{
    (void)state;
    struct rlimit limit = limit_now();
    limit.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    nofile_limit_raise();
    assert_true(limit_now().rlim_cur > 64);
    assert_true(limit_now().rlim_max == limit.rlim_max);
    assert_int_equal(nofile_limit_of_user(), 64);
    nofile_limit_restore();
    assert_int_equal(limit_now().rlim_cur, 64);
}

static void a_limit_that_came_another_way_counts(void **state)
{
    (void)state;
    nofile_limit_raise();
    nofile_limit_set_user(80);
    nofile_limit_restore();
    assert_int_equal(limit_now().rlim_cur, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_raised_is_restored),
        cmocka_unit_test(a_limit_that_came_another_way_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
