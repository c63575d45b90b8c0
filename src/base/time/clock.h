/* The two clocks. Pure code includes neither: time comes to it as data. */
#pragma once

#include <stdint.h>

int64_t clock_ms(void);      /* monotonic: for waits and durations */
int64_t clock_boot_ms(void); /* the same, but it continues while the machine sleeps: for leases */
int64_t clock_unix_ms(void); /* wall clock: for what is written down */
