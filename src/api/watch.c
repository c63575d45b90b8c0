/* Watch: a stream of ADDED, MODIFIED, DELETED and BOOKMARK events, a JSON object a line.
 *
 * A watcher that reads too slowly for its bounded queue is ended; its client lists again, as it
 * must after any end of a watch.
 *
 * Layer: services. Ownership: a watcher lives until its client leaves or its time is over; its
 * timer a little longer.
 */
#include "api/options.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOOKMARK_MS = 30000, TIMEOUT_S_MAX = 24 * 3600 };

struct watcher {
    struct live live; /* must be the first member */
    struct store_watch *watch;
    const struct resource *resource;
    struct call_selectors selectors;
    struct form form;
    bool bookmarks;
    bool failed;     /* the client cannot keep up, or out of memory: end it when it is safe */
    bool started;    /* before that, the initial state is sent, and the watch must not be ended */
    int64_t ends_ms; /* by the loop's clock; 0: never */
    uv_timer_t *timer;
};

/* ---- writing ---- */

static void write_line(struct watcher *w, json_t *event)
{
    muster_auto(free) char *text = event ? doc_print(event) : NULL;
    if (!text) {
        w->failed = true;
        return;
    }
    size_t length = strlen(text);
    text[length] = '\n'; /* the newline takes the place of the terminating NUL */
    if (http_reply_write(w->live.reply, text, length + 1) < 0) {
        w->failed = true;
    }
}

static void write_event(struct watcher *w, const char *type, json_t *object)
{
    if (w->failed) {
        return;
    }
    json_t *shown = form_object(&w->form, w->resource, object);
    muster_auto(doc) json_t *event = json_pack("{s:s, s:o}", "type", type, "object", shown);
    write_line(w, event);
}

/* An object that no longer fits the selector is deleted for this client, in its state before the
 * change. */
static void write_left(struct watcher *w, const struct store_change *change)
{
    muster_auto(doc) json_t *last = json_deep_copy(change->before);
    char version[24];
    (void)snprintf(version, sizeof version, "%" PRId64, change->version);
    if (!last || doc_set_text(last, "metadata.resourceVersion", version) < 0) {
        w->failed = true;
        return;
    }
    write_event(w, "DELETED", last);
}

static bool fits(const struct watcher *w, const json_t *object)
{
    return selector_match_labels(&w->selectors.labels, object) &&
           selector_match_fields(&w->selectors.fields, object);
}

static void on_change(void *arg, const struct store_change *change)
{
    struct watcher *w = arg;
    bool fitted = change->before && fits(w, change->before);
    bool fit = change->kind != STORE_DELETED && fits(w, change->object);
    if (change->kind == STORE_DELETED) {
        if (fitted) {
            write_event(w, "DELETED", change->object);
        }
    } else if (fit) {
        write_event(w, fitted ? "MODIFIED" : "ADDED", change->object);
    } else if (fitted) {
        write_left(w, change);
    }
    if (w->failed && w->started) {
        live_end(&w->live);
    }
}

/* ---- time ---- */

static void write_bookmark(struct watcher *w, bool initial_end)
{
    char version[24];
    (void)snprintf(version, sizeof version, "%" PRId64, store_version(w->live.api->store));
    muster_auto(doc) json_t *object = form_bookmark(&w->form, w->resource, version);
    if (object && initial_end) {
        json_object_set_new(json_object_get(object, "metadata"), "annotations",
                            json_pack("{s:s}", "k8s.io/initial-events-end", "true"));
    }
    muster_auto(doc) json_t *event = json_pack("{s:s, s:O?}", "type", "BOOKMARK", "object", object);
    write_line(w, event);
}

static void arm(struct watcher *w);

static void on_timer(uv_timer_t *timer)
{
    struct watcher *w = timer->data;
    if (w->ends_ms && (int64_t)uv_now(w->live.api->loop) >= w->ends_ms) {
        live_end(&w->live);
        return;
    }
    write_bookmark(w, false);
    if (w->failed) {
        live_end(&w->live);
        return;
    }
    arm(w);
}

/* Sets the timer for the next bookmark or for the end, whichever is first. */
static void arm(struct watcher *w)
{
    int64_t now = (int64_t)uv_now(w->live.api->loop);
    int64_t wait = w->bookmarks ? BOOKMARK_MS : INT64_MAX;
    if (w->ends_ms && w->ends_ms - now < wait) {
        wait = w->ends_ms - now;
    }
    if (wait != INT64_MAX) {
        uv_timer_start(w->timer, on_timer, wait > 0 ? (uint64_t)wait : 0, 0);
    }
}

static void free_timer(uv_handle_t *handle)
{
    free(handle);
}

static void close_watcher(struct live *live)
{
    struct watcher *w = (struct watcher *)live;
    store_unwatch(w->watch);
    call_selectors_done(&w->selectors);
    if (w->timer) {
        uv_close((uv_handle_t *)w->timer, free_timer);
    }
    free(w);
}

/* ---- opening ---- */

/* Writes the present objects as ADDED events; *ret is the version from which the watch
 * continues. */
static int write_present(struct watcher *w, const char *namespace, int64_t *ret,
                         struct muster_err *err)
{
    struct store_query query = {.resource = w->resource->plural,
                                .namespace = namespace,
                                .labels = &w->selectors.labels,
                                .fields = &w->selectors.fields};
    struct store_page page;
    int r = store_list(w->live.api->store, &query, &page, err);
    if (r < 0) {
        return r;
    }
    size_t i;
    json_t *item;
    json_array_foreach (page.items, i, item) {
        write_event(w, "ADDED", item);
    }
    *ret = page.version;
    store_page_done(&page);
    return 0;
}

static int make_timer(struct watcher *w, int64_t timeout_s)
{
    w->timer = calloc(1, sizeof *w->timer);
    if (!w->timer) {
        return MUSTER_ENOMEM;
    }
    uv_timer_init(w->live.api->loop, w->timer);
    w->timer->data = w;
    if (timeout_s > 0) {
        uv_update_time(w->live.api->loop);
        int64_t bounded_s = timeout_s < TIMEOUT_S_MAX ? timeout_s : TIMEOUT_S_MAX;
        w->ends_ms = (int64_t)uv_now(w->live.api->loop) + bounded_s * 1000;
    }
    return 0;
}

/* Checks everything that can be refused before the stream starts. */
static int prepare(struct api_call *call, struct watcher *w, int64_t *ret_version,
                   struct muster_err *err)
{
    int64_t timeout_s = 0;
    w->resource = call->route.resource;
    w->form = call->form;
    w->bookmarks =
        w->form.kind != FORM_TABLE && http_query_bool(call->request, "allowWatchBookmarks");
    int r = call_selectors(call, &w->selectors, err);
    r = r < 0 ? r : query_number(call->request, "timeoutSeconds", &timeout_s, err);
    r = r < 0 ? r : options_version(call, ret_version, err);
    if (r < 0) {
        return r;
    }
    if (make_timer(w, timeout_s) < 0) {
        return err_no_memory(err);
    }
    return 0;
}

/* Subscribes at the version. A version that is too old must be refused before the headers are sent,
 * so the subscription comes first and its replay waits in the queue. */
static int stream(struct api_call *call, struct watcher *w, int64_t version, struct muster_err *err)
{
    const char *namespace = *call->route.namespace ? call->route.namespace : NULL;
    bool asked = http_query(call->request, "sendInitialEvents");
    bool mark_end = http_query_bool(call->request, "sendInitialEvents");
    bool initial = asked ? mark_end : version == 0;
    struct store_watch_options options = {w->resource->plural, namespace,
                                          version ? version : STORE_FROM_NOW};
    int r = initial   ? options_not_older(call, version, err)
            : version ? store_check_version(call->api->store, version, err)
                      : 0;
    if (r < 0) {
        return r;
    }
    if (http_reply_start(call->reply, 200, "application/json") < 0) {
        return err_no_memory(err);
    }
    if (initial) {
        r = write_present(w, namespace, &options.after_version, err);
    }
    if (r == 0 && initial && mark_end && w->bookmarks) {
        write_bookmark(w, true);
    }
    r = r < 0 ? r : store_watch(call->api->store, &options, on_change, w, &w->watch, err);
    if (r < 0 || w->failed) {
        live_end(&w->live); /* the headers are sent: the watch can only be ended */
        return 0;
    }
    w->started = true;
    arm(w);
    return 0;
}

int verb_watch(struct api_call *call, struct muster_err *err)
{
    struct watcher *w = calloc(1, sizeof *w);
    int64_t version = 0;
    if (!w) {
        return err_no_memory(err);
    }
    int r = live_add(call->api, &w->live, call->reply, &call->api->watch_count, close_watcher, err);
    if (r < 0) {
        free(w);
        return r;
    }
    r = prepare(call, w, &version, err);
    r = r < 0 ? r : stream(call, w, version, err);
    if (r < 0) {
        call->reply->on_gone = NULL;
        live_close(&w->live);
    }
    return r;
}
