/* See waiter.h. */
#include "cli/pod/waiter.h"

#include "base/time/clock.h"

#include <string.h>

struct waiter {
    waiter_condition *condition;
    void *context;
    uv_timer_t limit;
    bool seen;
    bool met;
    bool late;
};

static void changed(void *context, enum kube_change change, const json_t *object)
{
    struct waiter *w = context;
    w->seen = change != KUBE_DELETED;
    w->met = w->met || w->condition(w->context, w->seen ? object : NULL);
}

static void too_late(uv_timer_t *timer)
{
    struct waiter *w = timer->data;
    w->late = true;
}

static void closed(uv_handle_t *handle)
{
    struct waiter *w = handle->data;
    w->limit.data = NULL;
}

static void run_limited(struct cli *cli, struct waiter *w, int64_t until_ms)
{
    uv_timer_init(&cli->loop, &w->limit);
    w->limit.data = w;
    if (until_ms < INT64_MAX) {
        int64_t left_ms = until_ms - clock_ms();
        uv_update_time(&cli->loop);
        uv_timer_start(&w->limit, too_late, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
    }
    while (!w->met && !w->late) {
        uv_run(&cli->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&w->limit, closed);
    while (w->limit.data) {
        uv_run(&cli->loop, UV_RUN_NOWAIT);
    }
}

int waiter_run(struct cli *cli, const struct kube_ref *ref, waiter_condition *condition,
               void *context, int64_t until_ms)
{
    struct waiter w = {.condition = condition, .context = context};
    struct kube_watch_events events = {changed, &w};
    struct kube_watch *watch = NULL;
    int r = kube_watch_start(cli->kube, ref, NULL, &events, &watch, &cli->err);
    if (r < 0) {
        return r;
    }
    if (!w.seen) {
        w.met = w.met || condition(context, NULL);
    }
    if (!w.met) {
        run_limited(cli, &w, until_ms);
    }
    kube_watch_stop(watch);
    return w.met ? 0 : muster_fail(&cli->err, MUSTER_ETIMEDOUT, "timed out");
}

bool waiter_gone(void *context, const json_t *object)
{
    const char *uid = context;
    return !object || (*uid && strcmp(doc_text(object, "metadata.uid", ""), uid) != 0);
}
