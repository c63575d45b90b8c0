/* Deadlines. Layer: comm. Thread: any. */
#include "comm/system/deadline.h"

#include <stdbool.h>
#include <time.h>

int64_t deadline_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t deadline_after_ms(int64_t timeout_ms)
{
    int64_t left_ns, deadline_ns;
    bool fits = !__builtin_mul_overflow(timeout_ms, 1000000, &left_ns) &&
                !__builtin_add_overflow(deadline_now_ns(), left_ns, &deadline_ns);
    return fits ? deadline_ns : timeout_ms < 0 ? 0 : INT64_MAX;
}

int deadline_ms_left(int64_t deadline_ns)
{
    int64_t left = (deadline_ns - deadline_now_ns()) / 1000000;
    return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}
