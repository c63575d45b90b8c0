/* Which processes of a container are killed at once, and which ones live until they have unlinked
 * the files that are left. */
#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "process/monitor/remnants.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

static pid_t start(char *words)
{
    char script[] = "while :; do sleep 0.1; done; : \"$0\"";
    char *const arguments[] = {"sh", "-c", script, words, NULL};
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ), 0);
    return pid;
}

static void who_has_no_words_yet_is_spared(void **state)
{
    (void)state;
    static const char tracker[] = "python3\0-c\0from multiprocessing.resource_tracker import main";
    static const char other[] = "python3\0-c\0from multiprocessing.spawn import main";
    assert_true(remnants_is_spared("", 0));
    assert_true(remnants_is_spared(tracker, sizeof tracker));
    assert_false(remnants_is_spared(other, sizeof other));
    assert_false(remnants_is_spared("", 1)); /* an empty title: one NUL */
}

/* Kills the remnants, and returns whether the process was killed. It has its words only after a
 * moment, and may be spared before. */
static bool is_killed(pid_t pid, int *ret_status)
{
    remnants_kill(getpid(), -1);
    return waitpid(pid, ret_status, WNOHANG) == pid;
}

static void all_but_trackers_are_killed(void **state)
{
    (void)state;
    pid_t tracker = start("from multiprocessing.resource_tracker import main");
    pid_t other = start("main");
    int status = 0;
    for (int64_t end = 0; !is_killed(other, &status);) {
        assert_true(test_turn(&end));
    }
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(waitpid(tracker, &status, WNOHANG), 0);
    remnants_kill(getpid(), tracker);
    assert_int_equal(waitpid(tracker, &status, 0), tracker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_no_words_yet_is_spared),
        cmocka_unit_test(all_but_trackers_are_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
