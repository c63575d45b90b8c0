/* A signal reaches the process that was found, not another process that has got its number
 * meanwhile. */
#include "process/machine/descendants.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Makes the system call fail in this process and its children. */
static bool forbid(long number, int code)
{
    struct sock_filter code_of[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code_of / sizeof code_of[0], code_of};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static pid_t start_sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            pause();
        }
    }
    return pid;
}

/* Lets a process that may not use one system call kill its own child. Returns 0 if the child has
 * died. */
static int kill_without(long number, int code)
{
    pid_t killer = fork();
    if (killer == 0) {
        pid_t sleeper = start_sleeper();
        test_alarm(); /* ends this process, and so the sleeper, if it still lives */
        bool sent = forbid(number, code) && descendants_kill(getpid(), SIGKILL) == 1;
        _exit(sent && waitpid(sleeper, NULL, 0) == sleeper ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(killer, &status, 0), killer);
    return status;
}

static void nothing_is_killed_by_its_number(void **state)
{
    (void)state;
    assert_int_equal(kill_without(SYS_kill, EPERM), 0);
}

static void a_kernel_without_pidfds_does_all_the_same(void **state)
{
    (void)state;
    assert_int_equal(kill_without(SYS_pidfd_open, ENOSYS), 0);
}

static void another_process_of_the_same_number_is_left_alone(void **state)
{
    (void)state;
    pid_t sleeper = start_sleeper();
    struct descendant *list = NULL;
    assert_int_equal(descendants_list(getpid(), &list), 1);
    assert_int_equal(list[0].pid, sleeper);
    struct descendant earlier = list[0];
    earlier.start_ticks--; /* a process that had this number before */
    assert_false(descendants_signal(&earlier, SIGKILL));
    assert_int_equal(waitpid(sleeper, NULL, WNOHANG), 0);
    assert_true(descendants_signal(&list[0], SIGKILL));
    assert_int_equal(waitpid(sleeper, NULL, 0), sleeper);
    assert_false(descendants_signal(&list[0], SIGKILL));
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_killed_by_its_number),
        cmocka_unit_test(a_kernel_without_pidfds_does_all_the_same),
        cmocka_unit_test(another_process_of_the_same_number_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
