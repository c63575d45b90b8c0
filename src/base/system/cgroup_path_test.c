/* Checks which control groups a process has, according to the texts of various kernels, and where
 * the trees of control groups are. */
#include "base/system/cgroup_path.h"

#include "base/cleanup.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"

#include <unistd.h>

static const char apart[] =
    "9:name=systemd:/\n4:memory:/a/b\n3:cpuset:/s\n2:cpuacct:/o\n1:cpu:/c\n";
static const char shared[] = "11:net_cls,net_prio:/n\n7:cpu,cpuacct:/user.slice\n"
                             "5:memory,hugetlb:/mem:ory\n1:name=systemd:/\n";
static const char hybrid[] = "8:pids:/p\n2:cpuacct,cpu:/c\n1:name=systemd:/x\n0::/user/me.scope\n";
static const char version_2[] = "0::/user.slice/user-0.slice/session-1.scope\n";

/* `path` is NULL if there is none. */
static void expect_path(const char *own, const char *controller, const char *path)
{
    muster_auto(free) char *got = cgroup_own_path(own, controller);
    if (path) {
        assert_non_null(got);
        assert_string_equal(got, path);
    } else {
        assert_null(got);
    }
}

static void a_controller_is_found_alone_and_among_others(void **state)
{
    (void)state;
    expect_path(apart, "memory", "/a/b");
    expect_path(apart, "cpu", "/c"); /* neither cpuset nor cpuacct */
    expect_path(apart, "", NULL);
    expect_path(shared, "cpu", "/user.slice");
    expect_path(shared, "cpuacct", "/user.slice");
    expect_path(shared, "memory", "/mem:ory");
    expect_path(shared, "net", NULL);
    expect_path(shared, "", NULL);
    expect_path(hybrid, "cpu", "/c");
    expect_path(hybrid, "memory", NULL);
    expect_path(hybrid, "", "/user/me.scope");
    expect_path(version_2, "memory", NULL);
    expect_path(version_2, "", "/user.slice/user-0.slice/session-1.scope");
}

static void what_is_no_line_is_passed_over(void **state)
{
    (void)state;
    expect_path("", "", NULL);
    expect_path("\n\n", "", NULL);
    expect_path("0:", "", NULL);
    expect_path("0:cpu\n1:memory:/m", "memory", "/m"); /* the line ends where the text ends */
    expect_path("0:cpu\n1:memory:/m", "cpu", NULL);
    expect_path("0::", "", "");
    expect_path("1:cpu,:/c\n", "memory", NULL);
}

static void expect_root(const char *root, const char *own, const char *folder)
{
    muster_auto(free) char *got = cgroup_v1_root(root, own, "cpu");
    muster_auto(free) char *expected = folder ? file_join(root, folder) : NULL;
    assert_true(folder ? got && strcmp(got, expected) == 0 : !got);
}

static void a_shared_tree_lies_under_all_names_or_a_link(void **state)
{
    const char *root = *state;
    muster_auto(free) char *folder = file_join(root, "cpu,cpuacct");
    muster_auto(free) char *link = file_join(root, "cpu");
    expect_root(root, version_2, NULL);
    expect_root(root, apart, "cpu");
    expect_root(root, shared, "cpu");
    assert_int_equal(file_mkdir(folder, 0700, NULL), 0);
    expect_root(root, shared, "cpu,cpuacct");
    expect_root(root, apart, "cpu");
    assert_int_equal(symlink("cpu,cpuacct", link), 0);
    expect_root(root, shared, "cpu");
    expect_root(root, hybrid, "cpu"); /* its folder has the names in another order */
}

static void version_2_lies_at_the_root_or_beside_version_1(void **state)
{
    const char *root = *state;
    muster_auto(free) char *procs = file_join(root, "cgroup.procs");
    muster_auto(free) char *unified = file_join(root, "unified");
    muster_auto(free) char *got = NULL;
    assert_string_equal(cgroup_v2_root(root, &got), unified);
    free(muster_take(got));
    assert_int_equal(file_put(procs, "", 0, 0600, NULL), 0);
    assert_string_equal(cgroup_v2_root(root, &got), root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_controller_is_found_alone_and_among_others),
        cmocka_unit_test(what_is_no_line_is_passed_over),
        cmocka_unit_test_setup_teardown(a_shared_tree_lies_under_all_names_or_a_link,
                                        test_folder_set_up, test_folder_tear_down),
        cmocka_unit_test_setup_teardown(version_2_lies_at_the_root_or_beside_version_1,
                                        test_folder_set_up, test_folder_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
