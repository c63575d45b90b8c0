/* Deadlines: points in time on the monotonic clock. Layer: comm. */
#pragma once

#include <stdint.h>

int64_t deadline_now_ns(void);
/* Returns the deadline, counted from now; a timeout of centuries never ends. */
int64_t deadline_after_ms(int64_t timeout_ms);
/* Returns the time left, for poll: at least 0, at most a minute. */
int deadline_ms_left(int64_t deadline_ns);
