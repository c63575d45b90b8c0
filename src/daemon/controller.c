/* See controller.h: the driver over the store, with the loop's clock. */
#include "daemon/controller.h"

#include "base/err.h"
#include "base/log.h"
#include "base/time/clock.h"
#include "controller/driver.h"
#include "daemon/store_cluster.h"

#include <stdlib.h>
#include <string.h>

struct controller {
    struct cluster *cluster;
    struct driver *driver;
    uv_timer_t timer; /* when the driver is due later … */
    uv_idle_t idle;   /* … and at once */
    int handles;
};

static int64_t now_ms(void *arg)
{
    (void)arg;
    return clock_ms();
}

static int64_t now_unix_ms(void *arg)
{
    (void)arg;
    return clock_unix_ms();
}

static void on_timer(uv_timer_t *timer)
{
    struct controller *c = timer->data;
    driver_turn(c->driver);
}

static void on_idle(uv_idle_t *idle)
{
    struct controller *c = idle->data;
    uv_idle_stop(idle);
    driver_turn(c->driver);
}

static void call_at(void *arg, int64_t at_ms)
{
    struct controller *c = arg;
    int64_t delay = at_ms == INT64_MIN ? 0 : at_ms == INT64_MAX ? INT64_MAX : at_ms - clock_ms();
    uv_timer_stop(&c->timer);
    uv_idle_stop(&c->idle);
    if (delay <= 0) {
        uv_idle_start(&c->idle, on_idle);
    } else if (at_ms != INT64_MAX) {
        uv_update_time(c->timer.loop);
        uv_timer_start(&c->timer, on_timer, (uint64_t)delay, 0);
    }
}

static void say(void *arg, const char *what, const char *key, const char *sentence)
{
    (void)arg;
    log_event(LOG_WARN, what, "%s: %s", key, sentence);
}

int controller_new(uv_loop_t *loop, struct store *store, struct controller **ret,
                   struct muster_err *err)
{
    struct controller *c = calloc(1, sizeof *c);
    if (!c) {
        return err_no_memory(err);
    }
    c->timer.data = c->idle.data = c;
    uv_timer_init(loop, &c->timer);
    uv_idle_init(loop, &c->idle);
    int r = store_cluster_new(loop, store, &c->cluster, err);
    if (r == 0) {
        const struct driver_options options = {
            .cluster = c->cluster,
            .clock = {now_ms, now_unix_ms, call_at, c},
            .say = say,
        };
        r = driver_new(&options, &c->driver, err);
    }
    if (r < 0) {
        controller_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

static void free_self(uv_handle_t *handle)
{
    struct controller *c = handle->data;
    if (++c->handles == 2) {
        free(c);
    }
}

struct controller *controller_free(struct controller *c)
{
    if (!c) {
        return NULL;
    }
    c->driver = driver_free(c->driver);
    c->cluster = store_cluster_free(c->cluster);
    uv_close((uv_handle_t *)&c->timer, free_self);
    uv_close((uv_handle_t *)&c->idle, free_self);
    return NULL;
}

size_t controller_live_jobs(const struct controller *c)
{
    return driver_live_jobs(c->driver);
}

bool controller_busy(const struct controller *c)
{
    return driver_is_busy(c->driver);
}
