/* See alarm.h. */
#include "loop/alarm.h"

#include "base/time/clock.h"

static void on_timer(uv_timer_t *timer)
{
    struct alarm_clock *alarm = timer->data;
    alarm->ring(alarm->arg);
}

static void on_idle(uv_idle_t *idle)
{
    struct alarm_clock *alarm = idle->data;
    uv_idle_stop(idle);
    alarm->ring(alarm->arg);
}

void alarm_init(uv_loop_t *loop, void (*ring)(void *arg), void *arg, struct alarm_clock *ret)
{
    *ret = (struct alarm_clock){.ring = ring, .arg = arg};
    uv_timer_init(loop, &ret->timer);
    uv_idle_init(loop, &ret->idle);
    ret->timer.data = ret->idle.data = ret;
}

void alarm_set(struct alarm_clock *alarm, int64_t at_ms)
{
    int64_t delay = at_ms == INT64_MIN ? 0 : at_ms == INT64_MAX ? INT64_MAX : at_ms - clock_ms();
    uv_timer_stop(&alarm->timer);
    uv_idle_stop(&alarm->idle);
    if (delay <= 0) {
        uv_idle_start(&alarm->idle, on_idle);
    } else if (at_ms != INT64_MAX) {
        uv_update_time(alarm->timer.loop); /* a timer counts from the loop's time */
        uv_timer_start(&alarm->timer, on_timer, (uint64_t)delay, 0);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct alarm_clock *alarm = handle->data;
    if (++alarm->handles == 2 && alarm->closed) {
        alarm->closed(alarm->arg);
    }
}

void alarm_close(struct alarm_clock *alarm, void (*closed)(void *arg))
{
    alarm->closed = closed;
    uv_close((uv_handle_t *)&alarm->timer, on_closed);
    uv_close((uv_handle_t *)&alarm->idle, on_closed);
}
