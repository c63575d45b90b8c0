/* Checks what is read about a process that runs, one that has ended, and one that does not
 * exist. */
#include "base/system/process_stat.h"

#include "base/testing/test.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_process_that_lives_is_read(void **state)
{
    (void)state;
    struct process_stat first, second;
    assert_true(process_stat_read(getpid(), &first));
    assert_true(process_stat_read(getpid(), &second));
    assert_int_equal(first.state, 'R');
    assert_int_equal(first.parent, getppid());
    assert_int_equal(first.end, 0);
    assert_true(first.start_ticks > 0);
    assert_true(first.start_ticks == second.start_ticks);
    assert_true(first.cpu_ticks <= second.cpu_ticks);
}

static void time_of_the_processor_is_counted(void **state)
{
    (void)state;
    struct process_stat begin, now;
    assert_true(process_stat_read(getpid(), &begin));
    do {
        assert_true(process_stat_read(getpid(), &now));
    } while (now.cpu_ticks < begin.cpu_ticks + 2);
}

static void its_name_may_have_any_characters(void **state)
{
    (void)state;
    struct process_stat is;
    char name[16];
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    assert_int_equal(prctl(PR_SET_NAME, ") Z 1 (x) X 2"), 0);
    assert_true(process_stat_read(getpid(), &is));
    assert_int_equal(prctl(PR_SET_NAME, name), 0);
    assert_int_equal(is.state, 'R');
    assert_int_equal(is.parent, getppid());
}

static void how_a_child_has_ended_is_there_before_it_is_waited_for(void **state)
{
    (void)state;
    struct process_stat is;
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(3);
    }
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(process_stat_read(pid, &is));
    assert_int_equal(is.state, 'Z');
    assert_int_equal(is.parent, getpid());
    assert_true(WIFEXITED(is.end));
    assert_int_equal(WEXITSTATUS(is.end), 3);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(process_stat_read(pid, &is));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_lives_is_read),
        cmocka_unit_test(time_of_the_processor_is_counted),
        cmocka_unit_test(its_name_may_have_any_characters),
        cmocka_unit_test(how_a_child_has_ended_is_there_before_it_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
