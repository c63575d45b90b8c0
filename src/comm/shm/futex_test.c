/* Checks sleeping where the kernel, or a container's filter of system calls, has no futex_waitv. */
#include "comm/shm/futex.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "comm/system/deadline.h"
#include "comm/system/refuse.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLEEP_MS = 100 };
enum { SLEPT = 0, CAME_BACK = 1 };

static int sleep_on_two(void)
{
    _Atomic uint32_t one = 1, two = 2;
    _Atomic uint32_t *const words[] = {&one, &two};
    const uint32_t values[] = {1, 2};
    int64_t start = deadline_now_ns();
    futex_wait_any(words, values, 2, SLEEP_MS);
    return deadline_now_ns() - start >= SLEEP_MS * INT64_C(1000000) ? SLEPT : CAME_BACK;
}

/* Runs in a child, because the filter cannot be removed. */
static int refuse_and_sleep(int code)
{
    int r = refuse_call(SYS_futex_waitv, code);
    return r ? r : sleep_on_two();
}

static void who_is_refused_sleeps_all_the_same(void **state)
{
    (void)state;
    static const int codes[] = {EPERM, ENOSYS, EACCES};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            _exit(refuse_and_sleep(codes[i]));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), SLEPT);
    }
}

static void a_word_that_differs_is_no_reason_to_sleep(void **state)
{
    (void)state;
    _Atomic uint32_t one = 1, two = 2;
    _Atomic uint32_t *const words[] = {&one, &two};
    const uint32_t values[] = {1, 3};
    int64_t start = deadline_now_ns();
    futex_wait_any(words, values, 2, 2 * test_limit_ms());
    assert_true(deadline_now_ns() - start < INT64_C(1000000) * test_limit_ms());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_refused_sleeps_all_the_same),
        cmocka_unit_test(a_word_that_differs_is_no_reason_to_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
