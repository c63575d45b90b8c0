/* For tests: a system call that this process is refused from now on, as by a container's filter.
 * Layer: comm, tests only. Thread: the one that calls, and those it starts later. */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

enum { REFUSE_NO_FILTERS = 77 };

/* Returns 0 or REFUSE_NO_FILTERS. It cannot be undone, so it is called in a child. */
static inline int refuse_call(long number, int code)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0
               ? REFUSE_NO_FILTERS
               : 0;
}
