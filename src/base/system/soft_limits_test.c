/* Checks that a shell's limits are read, raised for muster, and set again for the programs that it
 * runs. */
#include "base/doc.h"
#include "base/system/nofile_limit.h"
#include "base/system/soft_limits.h"
#include "base/testing/test.h"

#include <string.h>
#include <sys/resource.h>

static struct rlimit limit_of(__rlimit_resource_t resource)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(resource, &limit), 0);
    return limit;
}

static void set_soft(__rlimit_resource_t resource, rlim_t value)
{
    struct rlimit limit = limit_of(resource);
    limit.rlim_cur = value;
    assert_int_equal(setrlimit(resource, &limit), 0);
}

static void what_was_read_is_set_again(void **state)
{
    (void)state;
    set_soft(RLIMIT_CORE, 0);
    set_soft(RLIMIT_CPU, 4000);
    json_t *limits = soft_limits_read();
    assert_int_equal(doc_int(limits, "core", -2), 0);
    assert_int_equal(doc_int(limits, "cpu", -2), 4000);
    set_soft(RLIMIT_CPU, limit_of(RLIMIT_CPU).rlim_max);
    soft_limits_set(limits);
    assert_int_equal(limit_of(RLIMIT_CPU).rlim_cur, 4000);
    json_decref(limits);
}

static void ours_do_not_end_us(void **state)
{
    (void)state;
    set_soft(RLIMIT_FSIZE, 1 << 20);
    set_soft(RLIMIT_CORE, 0);
    soft_limits_raise();
    assert_int_equal(limit_of(RLIMIT_FSIZE).rlim_cur, limit_of(RLIMIT_FSIZE).rlim_max);
    assert_int_equal(limit_of(RLIMIT_CORE).rlim_cur, 0);
}

static void the_open_files_are_the_users(void **state)
{
    (void)state;
    nofile_limit_set_user(77);
    json_t *limits = soft_limits_read();
    assert_int_equal(doc_int(limits, "nofile", -2), 77);
    json_decref(limits);
}

static void a_limit_too_small_for_a_store_is_said(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    set_soft(RLIMIT_FSIZE, 200 << 10);
    assert_int_equal(soft_limits_check(&err), MUSTER_ECREATE);
    assert_non_null(strstr(err.text, "200 KiB at most (ulimit -f)"));
    set_soft(RLIMIT_FSIZE, limit_of(RLIMIT_FSIZE).rlim_max);
    assert_int_equal(soft_limits_check(&err), 0);
}

/* Any user may write the annotation. */
static void what_is_no_limit_changes_nothing(void **state)
{
    (void)state;
    rlim_t before = limit_of(RLIMIT_STACK).rlim_cur;
    json_t *odd = json_pack("{s:s, s:i, s:f, s:i}", "stack", "all", "core", -5, "cpu", 1.5, "x", 1);
    soft_limits_set(odd);
    soft_limits_set(NULL);
    assert_int_equal(limit_of(RLIMIT_STACK).rlim_cur, before);
    assert_int_equal(limit_of(RLIMIT_CORE).rlim_cur, 0);
    json_decref(odd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_is_set_again),
        cmocka_unit_test(ours_do_not_end_us),
        cmocka_unit_test(a_limit_too_small_for_a_store_is_said),
        cmocka_unit_test(the_open_files_are_the_users),
        cmocka_unit_test(what_is_no_limit_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
