/* Checks calls with and without membarrier. Where the kernel, or a container's filter of system
 * calls, does not have it, every call pays for the order that abort relies on, and no call takes a
 * fast path without that order. Where it exists, a process registers for it before others wait for
 * the process. */
#include "comm/progress/progress.h"

#include "base/testing/test.h"
#include "comm/system/membarrier.h"
#include "comm/system/refuse.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <muster/elastic.h>

enum { UNORDERED = 0, ORDERED = 1, BROKEN = 2 };

/* Runs in a child, because the filter cannot be removed. If `code` is 0, there is no filter. */
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

static bool has_registered(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/* Returns whether this process is registered once it has opened an endpoint. `code` must be 0. */
static int open_endpoint(int code)
{
    struct muster_endpoint *endpoint;
    bool before = has_registered();
    if (code != 0 || before || muster_endpoint_open("127.0.0.1", &endpoint, NULL) < 0) {
        return BROKEN;
    }
    bool registered = has_registered();
    muster_endpoint_close(endpoint);
    return registered;
}

static int in_a_child(int (*act)(int code), int code)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(act(code));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Children inherit their parent's registration, so this test must run before all others. */
static void who_joins_has_registered_before_others_wait(void **state)
{
    (void)state;
    int registered = in_a_child(open_endpoint, 0);
    assert_int_equal(registered, membarrier_register());
}

static void without_membarrier_calls_are_ordered(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(form_and_abort, 0), membarrier_register() ? UNORDERED : ORDERED);
    assert_int_equal(in_a_child(form_and_abort, EPERM), ORDERED);
    assert_int_equal(in_a_child(form_and_abort, ENOSYS), ORDERED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_joins_has_registered_before_others_wait),
        cmocka_unit_test(without_membarrier_calls_are_ordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
