/* Where the kernel, or a container's filter of system calls, has no membarrier, every call pays for
 * the order that abort relies on, and none takes a fast path without it. */
#include "comm/progress/progress.h"

#include "base/testing/test.h"
#include "comm/system/refuse.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNORDERED = 0, ORDERED = 1, BROKEN = 2 };

/* In a child: the filter stays for good. code 0: none. */
static int form_and_abort(int code)
{
    struct muster_comm_options alone;
    struct muster_comm *comm;
    float one = 1;
    int r = code ? refuse_call(SYS_membarrier, code) : 0;
    if (r != 0) {
        return r;
    }
    alone = (struct muster_comm_options)MUSTER_COMM_OPTIONS_INIT;
    if (muster_comm_create(&alone, &comm, NULL) < 0 ||
        muster_all_reduce(comm, &one, &one, 1, MUSTER_F32, MUSTER_SUM, NULL) < 0) {
        return BROKEN;
    }
    bool fenced = comm->fenced;
    muster_comm_abort(comm);
    r = muster_barrier(comm, NULL);
    muster_comm_free(comm);
    return r != MUSTER_EABORTED ? BROKEN : fenced ? ORDERED : UNORDERED;
}

static int in_a_child(int code)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(form_and_abort(code));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void without_membarrier_calls_are_ordered(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(0), progress_has_membarrier() ? UNORDERED : ORDERED);
    assert_int_equal(in_a_child(EPERM), ORDERED);
    assert_int_equal(in_a_child(ENOSYS), ORDERED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_membarrier_calls_are_ordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
