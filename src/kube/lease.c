/* A lease: an open connection that shows that this process lives. The first bytes of the answer
 * mean that the lease is held. */
#include "kube/internal.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 128 };
enum { LOSS_MS = 100 }; /* a controller closes its connections one by one */

struct kube_lease {
    struct kube *kube;
    char path[PATH_BYTES];
    struct kube_stream *stream;
    uv_timer_t retry;
    uv_timer_t limit; /* limits the wait for the lease, or for its loss */
    int open_timers;
    bool held;
    bool lost;
    bool late;
    struct muster_err err; /* why the first try failed */
};

static void renew(uv_timer_t *timer);

static void on_data(void *context, const char *bytes, size_t count)
{
    (void)bytes;
    (void)count;
    struct kube_lease *lease = context;
    lease->held = true;
}

static void on_end(void *context, int code, const struct muster_err *err)
{
    struct kube_lease *lease = context;
    lease->stream = NULL;
    if (code < 0 && !lease->held) {
        lease->err = *err;
    }
    lease->lost = lease->lost || lease->held;
    uv_timer_start(&lease->retry, renew, KUBE_RETRY_MS, 0);
}

static int hold(struct kube_lease *lease, struct muster_err *err)
{
    struct kube_stream_events events = {on_data, on_end, lease};
    return kube_stream_open_path(lease->kube, lease->path, &events, &lease->stream, err);
}

static void renew(uv_timer_t *timer)
{
    struct kube_lease *lease = timer->data;
    if (kube_ensure(lease->kube, NULL) < 0 || hold(lease, NULL) < 0) {
        uv_timer_start(&lease->retry, renew, KUBE_RETRY_MS, 0);
    }
}

static void too_late(uv_timer_t *timer)
{
    struct kube_lease *lease = timer->data;
    lease->late = true;
}

/* Runs the loop until the controller holds the lease, refuses it, or takes too long. */
static int wait_held(struct kube_lease *lease, struct muster_err *err)
{
    uv_timer_start(&lease->limit, too_late, KUBE_REQUEST_MS, 0);
    while (!lease->held && !lease->late && lease->err.code == 0) {
        uv_run(lease->kube->loop, UV_RUN_ONCE);
    }
    uv_timer_stop(&lease->limit);
    if (lease->held) {
        return 0;
    }
    if (lease->err.code) {
        return muster_fail(err, lease->err.code, "%s", lease->err.text);
    }
    return muster_fail(err, MUSTER_ETIMEDOUT,
                       "the controller (process %d) has not answered for %d s, and nothing was "
                       "created: it has too much to do (try again), or hangs (muster down --force)",
                       (int)kube_controller_pid(lease->kube), KUBE_REQUEST_MS / 1000);
}

static void start_timer(struct kube_lease *lease, uv_timer_t *timer)
{
    uv_timer_init(lease->kube->loop, timer);
    timer->data = lease;
    lease->open_timers++;
}

int kube_lease_start(struct kube *kube, const char *id, struct kube_lease **ret,
                     struct muster_err *err)
{
    struct kube_lease *lease = calloc(1, sizeof *lease);
    if (!lease) {
        return err_no_memory(err);
    }
    lease->kube = kube;
    muster_auto(free) char *path = kube_muster_path("leases", id, NULL);
    if (!path || strlen(path) >= sizeof lease->path) {
        free(lease);
        return path ? muster_fail(err, MUSTER_EINVAL, "the lease's name is too long: %.80s", id)
                    : err_no_memory(err);
    }
    memcpy(lease->path, path, strlen(path) + 1);
    start_timer(lease, &lease->retry);
    start_timer(lease, &lease->limit);
    int r = hold(lease, err);
    r = r < 0 ? r : wait_held(lease, err);
    if (r < 0) {
        kube_lease_stop(lease);
        return r;
    }
    *ret = lease;
    return 0;
}

bool kube_lease_was_lost(struct kube_lease *lease)
{
    lease->late = false;
    uv_timer_start(&lease->limit, too_late, LOSS_MS, 0);
    while (!lease->lost && !lease->late) {
        uv_run(lease->kube->loop, UV_RUN_ONCE);
    }
    uv_timer_stop(&lease->limit);
    return lease->lost;
}

static void timer_closed(uv_handle_t *handle)
{
    struct kube_lease *lease = handle->data;
    if (--lease->open_timers == 0) {
        free(lease);
    }
}

void kube_lease_stop(struct kube_lease *lease)
{
    if (!lease) {
        return;
    }
    kube_stream_close(lease->stream);
    lease->stream = NULL;
    uv_close((uv_handle_t *)&lease->retry, timer_closed);
    uv_close((uv_handle_t *)&lease->limit, timer_closed);
}
