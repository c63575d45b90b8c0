/* See controller.h: the driver over the store, with the loop's clock. */
#include "daemon/controller.h"

#include "base/err.h"
#include "base/log.h"
#include "base/time/clock.h"
#include "controller/driver.h"
#include "daemon/audit.h"
#include "daemon/store_cluster.h"
#include "loop/alarm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct controller {
    struct cluster *cluster;
    struct driver *driver;
    struct alarm_clock alarm; /* rings when the driver is due */
    int audit_fd;             /* -1: no audit */
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

static void on_alarm(void *arg)
{
    struct controller *c = arg;
    driver_turn(c->driver);
}

static void call_at(void *arg, int64_t at_ms)
{
    struct controller *c = arg;
    alarm_set(&c->alarm, at_ms);
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
    alarm_init(loop, on_alarm, c, &c->alarm);
    int r = audit_open(&c->audit_fd, err);
    r = r < 0 ? r : store_cluster_new(loop, store, &c->cluster, err);
    if (r == 0) {
        store_cluster_audit(c->cluster, c->audit_fd);
        const struct driver_options options = {
            .cluster = c->cluster,
            .clock = {now_ms, now_unix_ms, call_at, c},
            .restart_rules = true,
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

struct controller *controller_free(struct controller *c)
{
    if (!c) {
        return NULL;
    }
    c->driver = driver_free(c->driver);
    c->cluster = store_cluster_free(c->cluster);
    if (c->audit_fd >= 0) {
        close(c->audit_fd);
    }
    alarm_close(&c->alarm, free);
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
