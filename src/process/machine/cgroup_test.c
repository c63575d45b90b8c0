/* Control groups below a made-up root: which values are written to which files, for both
 * versions. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "process/machine/cgroup.h"

#include <stdlib.h>
#include <unistd.h>

static void make(const char *root, const char *name, const char *content)
{
    muster_auto(free) char *path = file_join(root, name);
    muster_auto(free) char *folder = strdup(path);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(file_mkdir(folder, 0700, NULL), 0);
    assert_int_equal(file_write(path, content, strlen(content), 0600, NULL), 0);
}

static void assert_holds(const char *root, const char *name, const char *content)
{
    muster_auto(free) char *path = file_join(root, name);
    muster_auto(free) char *text = NULL;
    assert_int_equal(file_read(path, 4096, &text, NULL, NULL), 0);
    assert_string_equal(text, content);
}

static const struct cgroup_limits limits = {.memory_bytes = 67108864, .cpu_millis = 500};

/* The kernel makes the files with the folder; here they exist already. */
static void version_1_has_a_tree_per_controller(void **state)
{
    const char *root = *state;
    struct cgroup_job job;
    struct cgroup group;
    make(root, "memory/me/muster-1/memory.limit_in_bytes", "");
    make(root, "memory/me/muster-1/p/memory.limit_in_bytes", "");
    make(root, "memory/me/muster-1/p/memory.oom_control",
         "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    make(root, "memory/me/muster-1/p/memory.max_usage_in_bytes", "123456\n");
    make(root, "cpu/muster-1/cpu.cfs_quota_us", "");
    make(root, "cpu/muster-1/p/cpu.cfs_quota_us", "");
    make(root, "cpu/muster-1/p/cpu.cfs_period_us", "");
    cgroup_job_init(&job, root, "4:memory:/me\n2:cpuacct:/other\n1:cpu:/\n0::/\n", "muster-1");
    assert_int_equal(cgroup_init(&group, &job, "p", &limits, NULL), 0);
    assert_holds(root, "memory/me/muster-1/p/memory.limit_in_bytes", "67108864");
    assert_holds(root, "cpu/muster-1/p/cpu.cfs_quota_us", "50000");
    assert_holds(root, "cpu/muster-1/p/cpu.cfs_period_us", "100000");
    assert_int_equal(cgroup_oom_kills(&group), 2);
    assert_int_equal(cgroup_peak_bytes(&group), 123456);
    cgroup_done(&group);
    cgroup_job_done(&job);
}

/* The trees as systemd mounts them, without the links: both have two controllers. */
static void version_1_may_have_several_controllers_in_a_tree(void **state)
{
    const char *root = *state;
    struct cgroup_job job;
    struct cgroup group;
    struct cgroup_memory m;
    make(root, "memory,pids/me/muster-1/memory.limit_in_bytes", "");
    make(root, "memory,pids/me/muster-1/p.c.0/memory.limit_in_bytes", "");
    make(root, "memory,pids/me/muster-1/p.c.0/memory.usage_in_bytes", "1000\n");
    make(root, "cpu,cpuacct/you/muster-1/cpu.cfs_quota_us", "");
    make(root, "cpu,cpuacct/you/muster-1/p.c.0/cpu.cfs_quota_us", "");
    cgroup_job_init(&job, root, "7:cpu,cpuacct:/you\n4:memory,pids:/me\n0::/\n", "muster-1");
    assert_int_equal(cgroup_init(&group, &job, "p.c.0", &limits, NULL), 0);
    assert_holds(root, "memory,pids/me/muster-1/p.c.0/memory.limit_in_bytes", "67108864");
    assert_holds(root, "cpu,cpuacct/you/muster-1/p.c.0/cpu.cfs_quota_us", "50000");
    assert_true(cgroup_read_memory(root, "4:memory,pids:/me/muster-1/p.c.0\n0::/\n", &m));
    assert_int_equal(m.used_bytes, 1000);
    assert_int_equal(m.limit_bytes, 67108864);
    cgroup_done(&group);
    cgroup_job_done(&job);
}

/* A group that holds processes delegates nothing, so the job's group is made beside that group. */
static void version_2_lies_beside_its_own_group(void **state)
{
    const char *root = *state;
    struct cgroup_job job;
    struct cgroup group;
    make(root, "cgroup.procs", "");
    make(root, "user/cgroup.subtree_control", "");
    make(root, "user/me.scope/cgroup.type", "domain\n");
    make(root, "user/muster-1/memory.max", "");
    make(root, "user/muster-1/cpu.max", "");
    make(root, "user/muster-1/cgroup.subtree_control", "");
    make(root, "user/muster-1/p/memory.max", "");
    make(root, "user/muster-1/p/memory.swap.max", "");
    make(root, "user/muster-1/p/cpu.max", "");
    make(root, "user/muster-1/p/memory.events", "low 0\noom 1\noom_kill 1\noom_group_kill 0\n");
    make(root, "user/muster-1/p/memory.peak", "77\n");
    cgroup_job_init(&job, root, "0::/user/me.scope\n", "muster-1");
    assert_int_equal(cgroup_init(&group, &job, "p", &limits, NULL), 0);
    assert_holds(root, "user/muster-1/p/memory.max", "67108864");
    assert_holds(root, "user/muster-1/p/memory.swap.max", "0");
    assert_holds(root, "user/muster-1/p/cpu.max", "50000 100000");
    assert_int_equal(cgroup_oom_kills(&group), 1);
    assert_int_equal(cgroup_peak_bytes(&group), 77);
    cgroup_done(&group);
    cgroup_job_done(&job);
}

static void what_is_not_permitted_is_said(void **state)
{
    const char *root = *state;
    struct cgroup_job job;
    struct cgroup group;
    struct muster_err err = MUSTER_ERR_INIT;
    cgroup_job_init(&job, root, "0::/user/me.scope\n", "muster-1");
    assert_int_equal(
        cgroup_init(&group, &job, "p", &(struct cgroup_limits){.memory_bytes = 1 << 20}, &err),
        MUSTER_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "the memory limit is not enforced: no control group"));
    assert_int_equal(cgroup_oom_kills(&group), 0);
    cgroup_done(&group);
    assert_int_equal(cgroup_init(&group, &job, "p", &(struct cgroup_limits){1 << 20, 500}, &err),
                     MUSTER_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "the memory and cpu limits are not enforced: no control"));
    cgroup_done(&group);
    assert_int_equal(cgroup_init(&group, &job, "p", &(struct cgroup_limits){0}, &err), 0);
    cgroup_done(&group);
    cgroup_job_done(&job);
}

static void a_group_that_cannot_be_entered_is_said(void **state)
{
    const char *root = *state;
    struct cgroup_job job;
    struct cgroup group;
    struct muster_err err = MUSTER_ERR_INIT;
    int fd;
    make(root, "memory/me/muster-1/memory.limit_in_bytes", "");
    make(root, "memory/me/muster-1/p/memory.limit_in_bytes", "");
    cgroup_job_init(&job, root, "4:memory:/me\n", "muster-1");
    assert_int_equal(
        cgroup_init(&group, &job, "p", &(struct cgroup_limits){.memory_bytes = 1 << 20}, &err), 0);
    assert_int_equal(cgroup_entrance(&group, CGROUP_MEMORY, &fd, &err), MUSTER_EOS);
    assert_int_equal(fd, -1);
    assert_non_null(
        strstr(err.text, "the memory limit is not enforced: its control group cannot "));
    assert_int_equal(cgroup_entrance(&group, CGROUP_CPU, &fd, &err), 0); /* no group is wanted */
    assert_int_equal(fd, -1);
    assert_int_equal(cgroup_enter(CGROUP_CPU, fd, &err), 0);
    make(root, "memory/me/muster-1/p/cgroup.procs", "");
    assert_int_equal(cgroup_entrance(&group, CGROUP_MEMORY, &fd, &err), 0);
    assert_int_equal(cgroup_enter(CGROUP_MEMORY, fd, &err), 0);
    close(fd);
    assert_holds(root, "memory/me/muster-1/p/cgroup.procs", "0");
    cgroup_done(&group);
    cgroup_job_done(&job);
}

static void what_a_group_uses_is_read_in_both_versions(void **state)
{
    const char *root = *state;
    struct cgroup_memory m;
    make(root, "memory/me/muster-1/u.c.0/memory.usage_in_bytes", "1000\n");
    make(root, "memory/me/muster-1/u.c.0/memory.max_usage_in_bytes", "2000\n");
    make(root, "memory/me/muster-1/u.c.0/memory.limit_in_bytes", "3000\n");
    make(root, "memory/me/muster-1/u.c.0/memory.stat",
         "inactive_file 1\ntotal_inactive_file 400\n");
    assert_true(cgroup_read_memory(root, "4:memory:/me/muster-1/u.c.0\n0::/\n", &m));
    assert_int_equal(m.used_bytes, 600);
    assert_int_equal(m.peak_bytes, 2000);
    assert_int_equal(m.limit_bytes, 3000);
    make(root, "cgroup.procs", "");
    make(root, "user/muster-2/u.c.0/memory.current", "1000\n");
    make(root, "user/muster-2/u.c.0/memory.max", "max\n");
    make(root, "user/muster-2/u.c.0/memory.stat", "anon 7\ninactive_file 100\n");
    assert_true(cgroup_read_memory(root, "0::/user/muster-2/u.c.0\n", &m));
    assert_int_equal(m.used_bytes, 900);
    assert_int_equal(m.peak_bytes, 0); /* older kernels do not report it */
    assert_int_equal(m.limit_bytes, 0);
    /* podman's groups, also with those that systemd and crun make below and beside them */
    make(root, "system.slice/libpod-1.scope/memory.current", "50\n");
    make(root, "system.slice/libpod-1.scope/memory.peak", "90\n");
    make(root, "system.slice/libpod-1.scope/memory.max", "90\n");
    make(root, "system.slice/libpod-1.scope/memory.events", "oom 1\noom_kill 2\n");
    assert_true(cgroup_read_memory(root, "0::/system.slice/libpod-1.scope/container\n", &m));
    assert_true(m.peak_bytes == 90 && m.limit_bytes == 90 && m.limit_reached && m.kills == 2);
    make(root, "memory/libpod_parent/libpod-2/memory.usage_in_bytes", "50\n");
    make(root, "memory/libpod_parent/libpod-2/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(cgroup_read_memory(root, "4:memory:/libpod_parent/libpod-2\n", &m));
    assert_true(m.limit_bytes == 0 && !m.limit_reached && m.kills == 0);
    assert_false(cgroup_read_memory(root, "0::/system.slice/libpod-conmon-1.scope\n", &m));
    /* Groups of other programs, and no group. */
    assert_false(cgroup_read_memory(root, "4:memory:/me\n0::/\n", &m));
    assert_false(cgroup_read_memory(root, "4:memory:/muster-1\n", &m));
    assert_false(cgroup_read_memory(root, "0::/user/muster-9/gone\n", &m));
    assert_false(cgroup_read_memory(root, "", &m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_1_has_a_tree_per_controller, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(version_1_may_have_several_controllers_in_a_tree,
                                        test_folder_set_up, test_folder_tear_down),
        cmocka_unit_test_setup_teardown(version_2_lies_beside_its_own_group, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(what_a_group_uses_is_read_in_both_versions,
                                        test_folder_set_up, test_folder_tear_down),
        cmocka_unit_test_setup_teardown(a_group_that_cannot_be_entered_is_said, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_permitted_is_said, test_folder_set_up,
                                        test_folder_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
