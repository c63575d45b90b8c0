/* Lets threads of any process sleep on words of memory. Layer: comm. Thread: any. */
#include "comm/shm/futex.h"

#include "comm/system/deadline.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef SYS_futex_waitv
static int wait_many(_Atomic uint32_t *const *words, const uint32_t *values, int num,
                     int timeout_ms)
{
    struct futex_waitv list[FUTEX_MAX_WORDS];
    for (int i = 0; i < num; i++) {
        list[i] =
            (struct futex_waitv){.val = values[i], .uaddr = (uintptr_t)words[i], .flags = FUTEX_32};
    }
    int64_t end = deadline_now_ns() + timeout_ms * INT64_C(1000000);
    struct timespec until = {end / 1000000000, end % 1000000000};
    return (int)syscall(SYS_futex_waitv, list, num, 0, &until, CLOCK_MONOTONIC);
}
#else
static int wait_many(_Atomic uint32_t *const *words, const uint32_t *values, int num,
                     int timeout_ms)
{
    (void)words, (void)values, (void)num, (void)timeout_ms;
    errno = ENOSYS;
    return -1;
}
#endif

/* A missing call is reported in several ways: ENOSYS by the kernel, EPERM by a container. */
static bool has_waited(int r)
{
    return r >= 0 || errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR;
}

void futex_wait_any(_Atomic uint32_t *const *words, const uint32_t *values, int num, int timeout_ms)
{
    assert(num > 0 && num <= FUTEX_MAX_WORDS);
    if (num > 1 && has_waited(wait_many(words, values, num, timeout_ms))) {
        return;
    }
    /* There is only one word, or this kernel cannot wait for several: then the other words are seen
     * at the next slice. */
    struct timespec most = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    (void)syscall(SYS_futex, words[0], FUTEX_WAIT, values[0], &most, NULL, 0);
}

void futex_wake_all(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
