/* Checks the error message if the kernel refuses what a segment needs. */
#include "comm/shm/segment.h"

#include "base/testing/test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AS_EXPECTED = 0, NO_FILTER = 2, OTHER_WORDS = 3 };

/* Refuses the call as a container's seccomp filter does. */
static int refuse_memfd(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return r < 0 ? r : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static int create_refused(void)
{
    struct segment segment;
    struct muster_err err = MUSTER_ERR_INIT;
    if (refuse_memfd() < 0) {
        return NO_FILTER;
    }
    int r = segment_create(2, &segment, &err);
    bool advised = strstr(err.text, "Operation not permitted") &&
                   strstr(err.text, "refuses memfd_create") && strstr(err.text, "permit it");
    return r == MUSTER_EOS && advised ? AS_EXPECTED : OTHER_WORDS;
}

static void a_refused_memfd_names_the_way_out(void **state)
{
    (void)state;
    int status = -1;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        _exit(create_refused());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), AS_EXPECTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_memfd_names_the_way_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
