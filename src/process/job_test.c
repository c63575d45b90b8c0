/* Real processes under a real supervisor, which is this program again. */
#include "process/fixture.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "process/supervisor_start.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void runs_logs_and_exits(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/c/0",
                   "{'argv': ['sh', '-c', 'echo out $RANK; echo err >&2; pwd; exit 3'],"
                   " 'env': {'RANK': '7'}, 'cwd': '/tmp'}");
    test_job_await(t, "exited p/c/0 code=3 oom=0 Error");
    assert_true(test_job_has(t, "started p/c/0"));
    muster_auto(free) char *log = test_job_log(t, "p/c");
    assert_string_equal(log, "out 7\nerr\n/tmp\n");
}

static void what_cannot_run_says_why(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/a/0", "{'argv': ['no-such-program'], 'cwd': '/'}");
    test_job_start(t, "p/b/0", "{'argv': ['/etc/passwd'], 'cwd': '/'}");
    test_job_start(t, "p/c/0", "{'argv': ['true'], 'cwd': '/no/such/folder'}");
    test_job_start(t, "p/d/0", "{'argv': ['/no/such/file'], 'cwd': '/'}");
    test_job_start(t, "p/e/0", "{'argv': []}");
    test_job_await(t, "start_failed p/a/0 code=127 StartError: exec: \"no-such-program\": "
                      "executable file not found in $PATH");
    test_job_await(t, "start_failed p/b/0 code=126 StartError: exec: \"/etc/passwd\": permission");
    test_job_await(t, "start_failed p/c/0 code=128 StartError: the working directory "
                      "/no/such/folder cannot be entered: No such file or directory");
    test_job_await(t, "start_failed p/d/0 code=127 StartError: exec: \"/no/such/file\": no such");
    test_job_await(t, "start_failed p/e/0 code=128 StartError: argv: from 1 to");
}

static void an_attempt_never_runs_twice(void **state)
{
    struct test_job *t = *state;
    char spec[512];
    (void)snprintf(spec, sizeof spec, "{'argv': ['sh', '-c', 'echo x >>%s/ran'], 'cwd': '/'}",
                   t->folder);
    test_job_start(t, "p/c/0", spec);
    test_job_await(t, "exited p/c/0 code=0 oom=0 Completed");
    test_job_forget(t);
    test_job_start(t, "p/c/0", spec);
    test_job_await(t, "exited p/c/0 code=0 oom=0 Completed");
    muster_auto(free) char *ran = NULL;
    muster_auto(free) char *path = file_join(t->folder, "ran");
    assert_int_equal(file_read(path, 64, &ran, NULL, NULL), 0);
    assert_string_equal(ran, "x\n");
}

static void signals_reach_the_group_and_kill_reaches_all(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/polite/0",
                   "{'argv': ['sh', '-c', 'trap `exit 9` TERM; echo up; while :; do sleep 0.02; "
                   "done'], 'cwd': '/'}");
    test_job_start(t, "p/deaf/0",
                   "{'argv': ['sh', '-c', 'trap `` TERM; echo up; setsid sleep 1000 & sleep 1000'],"
                   " 'cwd': '/'}");
    test_job_await(t, "started p/deaf/0");
    test_job_await(t, "started p/polite/0");
    test_job_await_log(t, "p/deaf", "up\n");
    test_job_await_log(t, "p/polite", "up\n");
    assert_int_equal(process_job_signal(t->job, "p/", SIGTERM, NULL), 0);
    test_job_await(t, "exited p/polite/0 code=9 oom=0 Error");
    assert_false(test_job_has(t, "exited p/deaf/0"));
    assert_int_equal(process_job_signal(t->job, "p/deaf/0", SIGKILL, NULL), 0);
    test_job_await(t, "exited p/deaf/0 code=137 oom=0 Error");
}

static void descendants_end_with_their_container(void **state)
{
    struct test_job *t = *state;
    char mark[512];
    test_job_start(t, "p/c/0",
                   "{'argv': ['sh', '-c', 'setsid sleep 1000 & (setsid sh -c `sleep 1001 &` &) "
                   "; sleep 1002 & exit 0'], 'cwd': '/'}");
    test_job_await(t, "exited p/c/0 code=0");
    (void)snprintf(mark, sizeof mark, "MUSTER_ATTEMPT=%s/containers/p/c/0", t->folder);
    assert_int_equal(test_marked_processes(mark), 0);
}

static void write_environment(struct test_job *t, const char *bytes, size_t count)
{
    muster_auto(free) char *path = file_join(t->folder, "environment");
    assert_int_equal(file_write(path, bytes, count, 0600, NULL), 0);
}

static void start_with_environment(struct test_job *t, const char *id, const char *script)
{
    char spec[1024];
    (void)snprintf(
        spec, sizeof spec,
        "{'argv': ['sh', '-c', '%s'], 'cwd': '/', 'environmentFile': '%s/environment', "
        "'env': {'PATH': '/usr/bin:/bin', 'RANK': '3'}, 'prepend': {'P': '/us', 'Q': '/us'}}",
        script, t->folder);
    test_job_start(t, id, spec);
}

/* The spec takes precedence over variables that were asked for, and those over the shell's; bytes
 * stay as they are. */
static void a_file_gives_the_environment(void **state)
{
    static const char bytes[] =
        "PATH=/nowhere\0A=shell\0B=\xff\xfe\nx\0P=/them\0RANK=7\0\0A=given\0";
    struct test_job *t = *state;
    write_environment(t, bytes, sizeof bytes - 1);
    start_with_environment(t, "p/c/0", "echo $A $RANK $P $Q; printenv B");
    test_job_await(t, "exited p/c/0 code=0");
    muster_auto(free) char *log = test_job_log(t, "p/c");
    assert_string_equal(log, "given 3 /us:/them /us\n\xff\xfe\nx\n");
}

static void an_environment_that_is_gone_or_too_large_is_said(void **state)
{
    struct test_job *t = *state;
    enum { EACH = 100 << 10, COUNT = 28 };
    start_with_environment(t, "p/gone/0", "true");
    test_job_await(t, "start_failed p/gone/0 code=128 StartError: the environment that the job was "
                      "submitted with: cannot read ");
    char *large = calloc(COUNT, EACH);
    for (size_t i = 0; i < COUNT; i++) {
        memset(large + i * EACH, 'x', EACH - 1);
        large[i * EACH] = (char)('A' + i);
        large[i * EACH + 1] = '=';
    }
    write_environment(t, large, (size_t)COUNT * EACH);
    free(large);
    start_with_environment(t, "p/large/0", "true");
    const char *line =
        test_job_await(t, "start_failed p/large/0 code=128 StartError: exec: \"sh\": "
                          "environment (2800 KiB; the largest variable, ");
    assert_non_null(strstr(line, "the kernel takes 2048 KiB in all"));
}

static void a_new_controller_adopts(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/a/0", "{'argv': ['true'], 'cwd': '/'}");
    test_job_start(t, "p/b/0", "{'argv': ['sleep', '1000'], 'cwd': '/'}");
    test_job_await(t, "exited p/a/0");
    test_job_await(t, "started p/b/0");
    int before = test_supervisor_pid(t, "p/b/0");
    test_job_close(t);
    test_job_forget(t);
    test_job_open(t);
    test_job_await(t, "ready");
    assert_true(test_job_has(t, "exited p/a/0 code=0"));
    assert_true(test_job_has(t, "started p/b/0"));
    assert_false(test_job_has(t, "exited p/b/0"));
    assert_int_equal(test_supervisor_pid(t, "p/b/0"), before);
    assert_int_equal(process_job_signal(t->job, "p/", SIGKILL, NULL), 0);
    test_job_await(t, "exited p/b/0 code=137 oom=0 Error");
}

static off_t bytes_of(const struct test_job *t, const char *name)
{
    muster_auto(free) char *path = file_join(t->folder, name);
    struct stat is;
    return stat(path, &is) == 0 ? is.st_size : -1;
}

/* Supervisors may add some lines of their own at any time. */
static void a_long_log_of_supervisors_is_put_aside(void **state)
{
    enum { LINES = 4096 };
    struct test_job *t = *state;
    muster_auto(free) char *path = file_join(t->folder, "supervisor.log");
    for (int more = 0; more < 2; more++) {
        char id[16];
        off_t bytes = more ? SUPERVISOR_LOG_BYTES_MAX + 1 : SUPERVISOR_LOG_BYTES_MAX - LINES;
        (void)snprintf(id, sizeof id, "p/b/%d", more);
        test_job_start(t, id, "{'argv': ['sleep', '1000'], 'cwd': '/'}");
        test_job_await(t, "started p/b/");
        assert_int_equal(truncate(path, bytes), 0);
        assert_int_equal(kill(test_supervisor_pid(t, id), SIGKILL), 0);
        test_job_await(t, "lost the job's supervisor was killed");
        test_job_close(t);
        test_job_forget(t);
        test_job_open(t);
        test_job_await(t, "ready");
        test_job_forget(t);
        off_t is = bytes_of(t, "supervisor.log"), was = bytes_of(t, "supervisor.log.old");
        assert_true(more ? is >= 0 && is < LINES : is >= bytes);
        assert_true(more ? was >= bytes : was == -1);
    }
}

static void a_killed_supervisor_is_told_and_recorded(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/a/0", "{'argv': ['true'], 'cwd': '/'}");
    test_job_start(t, "p/b/0", "{'argv': ['sleep', '1000'], 'cwd': '/'}");
    test_job_await(t, "exited p/a/0");
    test_job_await(t, "started p/b/0");
    assert_int_equal(kill(test_supervisor_pid(t, "p/b/0"), SIGKILL), 0);
    test_job_await(t, "lost the job's supervisor was killed");
    assert_false(test_job_has(t, "exited p/b/0"));
    test_job_close(t);
    test_job_forget(t);
    test_job_open(t);
    test_job_await(t, "ready");
    assert_true(test_job_has(t, "exited p/a/0 code=0"));
    assert_true(test_job_has(t, "exited p/b/0 code=137 oom=0 Lost"));
    assert_false(test_job_has(t, "lost"));
}

/* ---- Leaks ---- */

static int count_descriptors(int pid, const char *pattern)
{
    char folder[64];
    int count = 0;
    (void)snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *e = readdir(entries); e; e = readdir(entries)) {
        char target[PATH_MAX];
        ssize_t length = readlinkat(dirfd(entries), e->d_name, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = '\0';
        count += strstr(target, pattern) != NULL;
    }
    closedir(entries);
    return count;
}

static bool holds_no_attempt(void *data)
{
    return count_descriptors(*(const int *)data, "/containers/") == 0;
}

static int open_descriptors(struct test_job *t, int pid)
{
    assert_true(test_wait(t, holds_no_attempt, &pid));
    return count_descriptors(pid, "");
}

static long resident_kib(int pid)
{
    char path[64];
    muster_auto(free) char *text = NULL;
    long kib = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", pid);
    assert_int_equal(file_read(path, 65536, &text, NULL, NULL), 0);
    assert_int_equal(sscanf(strstr(text, "VmRSS:"), "VmRSS: %ld", &kib), 1);
    return kib;
}

static void run_attempts(struct test_job *t, int from, int to)
{
    for (int i = from; i < to; i++) {
        char id[32], exited[64];
        (void)snprintf(id, sizeof id, "p/c/%d", i);
        (void)snprintf(exited, sizeof exited, "exited p/c/%d code=0", i);
        test_job_start(t, id, "{'argv': ['echo', 'hello'], 'cwd': '/'}");
        (void)test_job_await(t, exited);
        test_job_forget(t);
    }
}

/* The sanitizers' own memory grows with use, so only descriptors are checked with them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GROWTH_KIB_MAX = INT_MAX };
#else
enum { GROWTH_KIB_MAX = 256 };
#endif

static void many_attempts_leave_nothing_behind(void **state)
{
    struct test_job *t = *state;
    run_attempts(t, 0, 20);
    int supervisor = test_supervisor_pid(t, "p/c/0");
    int descriptors = open_descriptors(t, supervisor);
    int own_descriptors = open_descriptors(t, getpid());
    long kib = resident_kib(supervisor);
    run_attempts(t, 20, 120);
    assert_int_equal(open_descriptors(t, supervisor), descriptors);
    assert_int_equal(open_descriptors(t, getpid()), own_descriptors);
    assert_true(resident_kib(supervisor) - kib <= GROWTH_KIB_MAX);
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_logs_and_exits, test_job_set_up, test_job_tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_run_says_why, test_job_set_up,
                                        test_job_tear_down),
        cmocka_unit_test_setup_teardown(an_attempt_never_runs_twice, test_job_set_up,
                                        test_job_tear_down),
        cmocka_unit_test_setup_teardown(signals_reach_the_group_and_kill_reaches_all,
                                        test_job_set_up, test_job_tear_down),
        cmocka_unit_test_setup_teardown(descendants_end_with_their_container, test_job_set_up,
                                        test_job_tear_down),
        cmocka_unit_test_setup_teardown(many_attempts_leave_nothing_behind, test_job_set_up,
                                        test_job_tear_down),
        cmocka_unit_test_setup_teardown(a_file_gives_the_environment, test_job_set_up,
                                        test_job_tear_down),
        cmocka_unit_test_setup_teardown(an_environment_that_is_gone_or_too_large_is_said,
                                        test_job_set_up, test_job_tear_down),
        cmocka_unit_test_setup_teardown(a_new_controller_adopts, test_job_set_up,
                                        test_job_tear_down),
        cmocka_unit_test_setup_teardown(a_long_log_of_supervisors_is_put_aside, test_job_set_up,
                                        test_job_tear_down),
        cmocka_unit_test_setup_teardown(a_killed_supervisor_is_told_and_recorded, test_job_set_up,
                                        test_job_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return test_job_main(argc, argv, all_tests);
}
