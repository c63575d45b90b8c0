/* See fetch.h. */
#include "cli/copy/fetch.h"

#include "base/err.h"
#include "base/system/random.h"
#include "base/time/clock.h"
#include "cli/copy/helper.h"
#include "cli/copy/unpack.h"
#include "cli/follow/pod_waiting.h"
#include "cli/follow/signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOKEN_BYTES = 16,
    NAME_BYTES = 64,
    PATIENCE_MS = 10000, /* after this, the reason for the wait is printed */
    LIMIT_MS = 600000,   /* until the pod must be ready: an image may have to be pulled */
    SIGNAL_BASE = 128,
    PATH_BYTES = 1024,
};

enum phase { WAITING, READY, OVER };

struct fetch {
    struct cli *cli;
    const struct fetch_order *order;
    char name[NAME_BYTES];
    char token[2 * TOKEN_BYTES + 1];
    enum phase phase;
    int result;                 /* set in the phase OVER; the sentence is in cli->err */
    int signal;                 /* the signal that ends it, or 0 */
    struct kube_stream *stream; /* of the archive, while it is open */
    bool late;
    bool impatient;
    char said[POD_WAITING_TEXT_BYTES]; /* the last reason for the wait that was printed */
    struct pod_waiting waiting;
    struct tar_reader reader;
    uv_timer_t limit;
    uv_timer_t patience;
    uv_signal_t signals[SIGNALS_COUNT];
    size_t open; /* open handles */
};

static void finish(struct fetch *f, int result)
{
    f->phase = OVER;
    f->result = result;
}

/* ---- signals and limits ---- */

static void on_signal(uv_signal_t *handle, int number)
{
    struct fetch *f = handle->data;
    f->signal = number;
}

static void on_limit(uv_timer_t *timer)
{
    struct fetch *f = timer->data;
    f->late = true;
}

static void say_why(struct fetch *f)
{
    if (*f->waiting.why && strcmp(f->waiting.why, f->said) != 0) {
        cli_say("pod %s, which is to serve the files, waits: %s", f->name, f->waiting.why);
        memcpy(f->said, f->waiting.why, sizeof f->said);
    }
}

static void on_patience(uv_timer_t *timer)
{
    struct fetch *f = timer->data;
    f->impatient = true;
    say_why(f);
}

static void open_handles(struct fetch *f)
{
    uv_loop_t *loop = &f->cli->loop;
    uv_update_time(loop);
    uv_timer_init(loop, &f->limit);
    uv_timer_init(loop, &f->patience);
    f->limit.data = f->patience.data = f;
    uv_timer_start(&f->limit, on_limit, LIMIT_MS, 0);
    uv_timer_start(&f->patience, on_patience, PATIENCE_MS, 0);
    for (size_t i = 0; i < SIGNALS_COUNT; i++) {
        uv_signal_init(loop, &f->signals[i]);
        f->signals[i].data = f;
        if (signals_is_heard(signals_ending[i])) {
            uv_signal_start(&f->signals[i], on_signal, signals_ending[i]);
        }
    }
    f->open = 2 + SIGNALS_COUNT;
}

static void on_closed(uv_handle_t *handle)
{
    struct fetch *f = handle->data;
    f->open--;
}

static void close_handles(struct fetch *f)
{
    uv_close((uv_handle_t *)&f->limit, on_closed);
    uv_close((uv_handle_t *)&f->patience, on_closed);
    for (size_t i = 0; i < SIGNALS_COUNT; i++) {
        uv_close((uv_handle_t *)&f->signals[i], on_closed);
    }
    while (f->open > 0) {
        uv_run(&f->cli->loop, UV_RUN_NOWAIT);
    }
}

/* ---- the pod ---- */

static bool is_ready(const json_t *pod)
{
    const json_t *ready = doc_find(doc_at(pod, "status.conditions"), "type", "Ready");
    return strcmp(doc_text(ready, "status", ""), "True") == 0;
}

/* Reports that the pod ended before it served anything. */
static int explain_end(struct fetch *f, const json_t *pod)
{
    const json_t *ended = doc_at(pod, "status.containerStatuses.0.state.terminated");
    const char *why = doc_text(ended, "message", doc_text(pod, "status.message", "it ended"));
    return muster_fail(&f->cli->err, MUSTER_EUNAVAIL,
                       "pod %s cannot serve the files: %.500s (image %s must have python3; --image "
                       "names another one)",
                       f->name, why, doc_text(pod, "spec.containers.0.image", ""));
}

static void on_pod(void *context, enum kube_change change, const json_t *pod)
{
    struct fetch *f = context;
    const char *phase = doc_text(pod, "status.phase", "");
    if (f->phase != WAITING) {
        return;
    }
    if (change == KUBE_DELETED) {
        finish(f, muster_fail(&f->cli->err, MUSTER_EGONE,
                              "pod %s, which was to serve the files, was deleted", f->name));
    } else if (strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0) {
        finish(f, explain_end(f, pod));
    } else if (is_ready(pod)) {
        f->phase = READY;
    } else {
        pod_waiting_of(pod, &f->waiting);
        if (f->impatient) {
            say_why(f);
        }
    }
}

static int wait_ready(struct fetch *f, const struct kube_ref *pod)
{
    const struct kube_watch_events events = {on_pod, f};
    struct kube_watch *watch = NULL;
    int r = kube_watch_start(f->cli->kube, pod, NULL, &events, &watch, &f->cli->err);
    while (r == 0 && f->phase == WAITING && !f->signal && !f->late) {
        uv_run(&f->cli->loop, UV_RUN_ONCE);
    }
    kube_watch_stop(watch);
    uv_timer_stop(&f->patience);
    uv_timer_stop(&f->limit);
    if (r == 0 && f->phase == WAITING && f->late) {
        return muster_fail(&f->cli->err, MUSTER_ETIMEDOUT,
                           "pod %s, which was to serve the files, was not ready in %d minutes%s%s",
                           f->name, LIMIT_MS / 60000, *f->waiting.why ? ": " : "", f->waiting.why);
    }
    return r < 0 ? r : f->phase == OVER ? f->result : 0;
}

/* ---- the archive ---- */

static void on_data(void *context, const char *bytes, size_t count)
{
    struct fetch *f = context;
    if (f->phase == READY) {
        int r = tar_feed(&f->reader, bytes, count, &f->cli->err);
        if (r < 0 || tar_is_over(&f->reader)) {
            finish(f, r);
        }
    }
}

static void on_end(void *context, int code, const struct muster_err *err)
{
    struct fetch *f = context;
    f->stream = NULL; /* the stream has freed itself */
    if (f->phase == OVER) {
        return;
    }
    if (code < 0) {
        f->cli->err = *err;
        finish(f, code);
    } else {
        finish(f,
               muster_fail(&f->cli->err, MUSTER_EIO,
                           "the files from pod %s are incomplete: the pod or its connection to the "
                           "API server was ended",
                           f->name));
    }
}

static int receive(struct fetch *f)
{
    const struct kube_stream_events events = {on_data, on_end, f};
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/pods/%s:%d/proxy/%s", cli_namespace(f->cli),
             f->name, HELPER_PORT, f->token);
    int r = kube_stream_open_path(f->cli->kube, path, &events, &f->stream, &f->cli->err);
    while (r == 0 && f->phase == READY && !f->signal) {
        uv_run(&f->cli->loop, UV_RUN_ONCE);
    }
    kube_stream_close(f->stream);
    return r < 0 ? r : f->phase == OVER ? f->result : 0;
}

static int fetch_files(struct fetch *f, const struct kube_ref *pod)
{
    struct unpack unpack;
    int r = wait_ready(f, pod);
    if (r < 0 || f->signal) {
        return r;
    }
    unpack_init(&unpack, f->order->to);
    const struct tar_events events = unpack_events(&unpack);
    tar_init(&f->reader, &events);
    r = receive(f);
    tar_done(&f->reader);
    unpack_done(&unpack);
    return r;
}

/* ---- the pod's beginning and end ---- */

static int make_names(struct fetch *f)
{
    enum { SUFFIX_DIGITS = 6, STEM_MAX = NAME_BYTES - 1 - 5 - 1 - SUFFIX_DIGITS };
    char digits[2 * TOKEN_BYTES + SUFFIX_DIGITS + 1];
    int r = random_hex(digits, sizeof digits / 2, &f->cli->err);
    if (r < 0) {
        return r;
    }
    memcpy(f->token, digits, 2 * TOKEN_BYTES);
    snprintf(f->name, sizeof f->name, "%.*s-copy-%s", STEM_MAX,
             doc_text(f->order->pod, "metadata.name", "files"), digits + 2 * TOKEN_BYTES);
    return 0;
}

/* Deletes the pod. A failure is only reported, because the pod ends by itself and is deleted with
 * its owner. */
static void remove_pod(struct fetch *f, const struct kube_ref *pod)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (kube_delete(f->cli->kube, pod, 0, &err) < 0 && err.code != MUSTER_ENOENT) {
        cli_say("warning: pod %s is left over: %s", f->name, err.text);
    }
}

int fetch_run(struct cli *cli, const struct fetch_order *order)
{
    struct fetch f = {.cli = cli, .order = order};
    muster_auto(doc) json_t *object = NULL;
    int r = make_names(&f);
    const struct helper helper = {order->pod, order->container, order->owner, order->image,
                                  f.name,     f.token,          order->path};
    r = r < 0 ? r : helper_make(&helper, &object, &cli->err);
    if (r < 0) {
        return r;
    }
    const struct kube_ref pod = {kube_resource_find("pods"), cli_namespace(cli), f.name, NULL};
    open_handles(&f);
    r = kube_create(cli->kube, &pod, object, NULL, &cli->err);
    if (r == 0) {
        r = fetch_files(&f, &pod);
        remove_pod(&f, &pod);
    }
    close_handles(&f);
    return r < 0 ? r : f.signal ? SIGNAL_BASE + f.signal : 0;
}
