/* A container's monitor is killed, or stopped. A rank that cannot end at once is traced by this
 * program, with PTRACE_O_TRACEEXIT: after SIGKILL it stops before it exits and stays until it is
 * released, and its environment stays readable. */
#include "process/fixture.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "process/wire/record.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static pid_t process_of(const struct test_job *t, const char *id)
{
    muster_auto(free) char *folder = record_folder(t->folder, id);
    muster_auto(doc) json_t *started = record_read(folder, "started.json");
    pid_t pid = (pid_t)strtol(doc_text(started, "process", "0"), NULL, 10);
    assert_true(pid > 0);
    return pid;
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    int parent = 0;
    muster_auto(free) char *text = NULL;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    assert_int_equal(file_read(path, 4096, &text, NULL, NULL), 0);
    assert_int_equal(sscanf(strrchr(text, ')'), ") %*c %d", &parent), 1);
    return (pid_t)parent;
}

/* Whether the wait status is that of a stop at the exit, as its tracer gets it (ptrace(2)). */
static bool stops_at_exit(void *data)
{
    int status = 0;
    return waitpid(*(const pid_t *)data, &status, WNOHANG | __WALL) > 0 &&
           status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXIT << 8));
}

static void others_are_looked_after_while_a_dead_monitors_rank_is_hunted(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/stuck/0", "{'argv': ['sleep', '1000'], 'cwd': '/'}");
    test_job_start(t, "p/other/0", "{'argv': ['sleep', '1000'], 'cwd': '/'}");
    test_job_await(t, "started p/stuck/0");
    test_job_await(t, "started p/other/0");
    pid_t rank = process_of(t, "p/stuck/0");
    assert_int_equal(ptrace(PTRACE_SEIZE, rank, NULL, PTRACE_O_TRACEEXIT), 0);
    assert_int_equal(kill(parent_of(rank), SIGKILL), 0);
    assert_true(test_wait(t, stops_at_exit, &rank));
    assert_int_equal(process_job_signal(t->job, "p/other/0", SIGKILL, NULL), 0);
    test_job_await(t, "exited p/other/0 code=137");
    assert_false(test_job_has(t, "exited p/stuck/0"));
    assert_int_equal(ptrace(PTRACE_DETACH, rank, NULL, NULL), 0);
    test_job_await(t, "exited p/stuck/0 code=137");
}

/* The end is reported once, and nothing waits for ever for a rank that does not end. */
static void a_rank_that_does_not_end_is_given_up(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/stuck/0", "{'argv': ['sleep', '1000'], 'cwd': '/'}");
    test_job_await(t, "started p/stuck/0");
    pid_t rank = process_of(t, "p/stuck/0");
    assert_int_equal(ptrace(PTRACE_SEIZE, rank, NULL, PTRACE_O_TRACEEXIT), 0);
    assert_int_equal(kill(parent_of(rank), SIGKILL), 0);
    assert_true(test_wait(t, stops_at_exit, &rank));
    test_job_await(t, "exited p/stuck/0 code=137");
    assert_int_equal(ptrace(PTRACE_DETACH, rank, NULL, NULL), 0);
}

static void what_is_stopped_passes_a_signal_on(void **state)
{
    struct test_job *t = *state;
    static const char *const ids[] = {"p/a/0", "p/b/0"};
    for (size_t i = 0; i < 2; i++) {
        test_job_start(t, ids[i], "{'argv': ['sleep', '1000'], 'cwd': '/'}");
    }
    test_job_await(t, "started p/a/0");
    test_job_await(t, "started p/b/0");
    assert_int_equal(kill(parent_of(process_of(t, "p/a/0")), SIGSTOP), 0);
    assert_int_equal(process_job_signal(t->job, "p/a/0", SIGTERM, NULL), 0);
    test_job_await(t, "exited p/a/0 code=143");
    assert_int_equal(kill(test_supervisor_pid(t, "p/b/0"), SIGSTOP), 0);
    assert_int_equal(process_job_signal(t->job, "p/b/0", SIGKILL, NULL), 0);
    test_job_await(t, "exited p/b/0 code=137");
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            others_are_looked_after_while_a_dead_monitors_rank_is_hunted, test_job_set_up,
            test_job_tear_down),
        cmocka_unit_test_setup_teardown(a_rank_that_does_not_end_is_given_up, test_job_set_up,
                                        test_job_tear_down),
        cmocka_unit_test_setup_teardown(what_is_stopped_passes_a_signal_on, test_job_set_up,
                                        test_job_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return test_job_main(argc, argv, all_tests);
}
