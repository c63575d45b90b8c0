/* An alarm: calls a function from the loop, at a time of clock_ms or at once.
 *
 * Layer: services. Thread: the loop's. Ownership: the caller's struct, which must live until
 * `closed` was called.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

struct alarm_clock {
    uv_timer_t timer; /* for a time in the future … */
    uv_idle_t idle;   /* … and for a time that has come */
    void (*ring)(void *arg);
    void (*closed)(void *arg);
    void *arg;
    int handles; /* how many of the two are closed */
};

void alarm_init(uv_loop_t *loop, void (*ring)(void *arg), void *arg, struct alarm_clock *ret);

/* Sets the time, instead of the one that was set before. INT64_MIN: at once; INT64_MAX: never. */
void alarm_set(struct alarm_clock *alarm, int64_t at_ms);

/* Closes the alarm. `closed` (may be NULL) is called from the loop, which must run once more. */
void alarm_close(struct alarm_clock *alarm, void (*closed)(void *arg));
