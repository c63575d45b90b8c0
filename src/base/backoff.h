/* The kubelet's crash loop back-off: the first restart comes at once, the next after 10 s, and the
 * delay doubles up to 300 s. A container that ran for 600 s begins again without a delay.
 *
 * Layer: base. Pure.
 */
#pragma once

#include <stdint.h>

enum {
    BACKOFF_FIRST_MS = 10000,
    BACKOFF_MAX_MS = 300000,
    BACKOFF_RESET_MS = 600000,
};

/* Returns how long the restart after this number of crashes in a row waits. */
static inline int64_t backoff_ms(int64_t crashes)
{
    int64_t doublings = crashes - 2 < 5 ? crashes - 2 : 5;
    int64_t delay = crashes <= 1 ? 0 : (int64_t)BACKOFF_FIRST_MS << doublings;
    return delay < BACKOFF_MAX_MS ? delay : BACKOFF_MAX_MS;
}
