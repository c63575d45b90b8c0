/* A watch: the list, then its changes, for as long as the caller wants, even if the controller is
 * replaced meanwhile.
 *
 * `known` holds the newest version of each object, so that after a gap (expired version, new
 * controller) a fresh list shows which objects were changed or deleted.
 */
#include "kube/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES_MAX = 16 << 20,
    VERSION_BYTES = 32,
    FAILURES_MAX = 6, /* failures that make the pause longer: to 6.4 s */
};

struct kube_watch {
    struct kube *kube;
    struct kube_ref ref;
    struct kube_query query;
    char *namespace, *name, *labels, *fields; /* the strings that ref and query point to */
    struct kube_watch_events events;
    char version[VERSION_BYTES];
    json_t *known; /* "namespace/name" -> object; empty for Tables */
    struct buf line;
    struct kube_stream *stream;
    uv_timer_t retry, look;
    int open;     /* handles that are not yet closed */
    int failures; /* of a cluster's API server, in a row */
    bool stopped;
    bool expired; /* the version is too old: list again */
};

static void retry_later(struct kube_watch *w);

static void key_of(const json_t *object, char *ret, size_t size)
{
    snprintf(ret, size, "%s/%s", doc_text(object, "metadata.namespace", ""),
             doc_text(object, "metadata.name", ""));
}

static void tell(struct kube_watch *w, enum kube_change change, const json_t *object)
{
    if (!w->stopped) {
        w->events.changed(w->events.context, change, object);
    }
}

static void update_known(struct kube_watch *w, enum kube_change change, json_t *object)
{
    char key[600];
    key_of(object, key, sizeof key);
    if (change == KUBE_DELETED) {
        json_object_del(w->known, key);
    } else {
        json_object_set(w->known, key, object);
    }
}

/* Adds kind and apiVersion to an item, because a list does not repeat them for each item. */
static void name_kind(const struct kube_watch *w, json_t *object)
{
    if (!json_object_get(object, "kind")) {
        json_object_set_new(object, "kind", json_string(w->ref.resource->kind));
        json_object_set_new(object, "apiVersion", json_string(w->ref.resource->api_version));
    }
}

static void take_listed(struct kube_watch *w, json_t *object)
{
    char key[600];
    key_of(object, key, sizeof key);
    const json_t *before = json_object_get(w->known, key);
    const char *version = doc_text(object, "metadata.resourceVersion", "");
    if (before && strcmp(doc_text(before, "metadata.resourceVersion", "?"), version) == 0) {
        return;
    }
    enum kube_change change = before ? KUBE_MODIFIED : KUBE_ADDED;
    name_kind(w, object);
    update_known(w, change, object);
    tell(w, change, object);
}

static bool listed(const json_t *items, const char *key)
{
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        char other[600];
        key_of(item, other, sizeof other);
        if (strcmp(key, other) == 0) {
            return true;
        }
    }
    return false;
}

/* Reports objects that we knew and that the list no longer has. */
static void tell_gone(struct kube_watch *w, const json_t *items)
{
    const char *key;
    json_t *object;
    void *next;
    json_object_foreach_safe (w->known, next, key, object) {
        if (!listed(items, key)) {
            json_incref(object);
            json_object_del(w->known, key);
            tell(w, KUBE_DELETED, object);
            json_decref(object);
        }
    }
}

static int list(struct kube_watch *w, struct muster_err *err)
{
    struct kube_ref ref = w->ref;
    muster_auto(doc) json_t *answer = NULL;
    int r = kube_list(w->kube, &ref, &w->query, &answer, err);
    if (r < 0) {
        return r;
    }
    snprintf(w->version, sizeof w->version, "%s",
             doc_text(answer, "metadata.resourceVersion", "0"));
    w->expired = false;
    if (w->query.table) {
        tell(w, KUBE_ADDED, answer);
        return 0;
    }
    const json_t *items = doc_at(answer, "items");
    tell_gone(w, items);
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        if (json_is_object(item)) {
            take_listed(w, item);
        }
    }
    return 0;
}

static void take_event(struct kube_watch *w, json_t *event)
{
    static const char *const types[] = {"ADDED", "MODIFIED", "DELETED"};
    const char *type = doc_text(event, "type", "");
    json_t *object = json_object_get(event, "object");
    if (strcmp(type, "ERROR") == 0) {
        w->expired = true;
        return;
    }
    if (!json_is_object(object)) {
        return;
    }
    const char *version = doc_text(object, "metadata.resourceVersion", "");
    if (*version) {
        snprintf(w->version, sizeof w->version, "%s", version);
    }
    for (int i = KUBE_ADDED; i <= KUBE_DELETED; i++) {
        if (strcmp(type, types[i]) == 0) {
            if (!w->query.table) {
                update_known(w, (enum kube_change)i, object);
            }
            tell(w, (enum kube_change)i, object);
        }
    }
}

static void take_line(struct kube_watch *w, const char *text, size_t bytes)
{
    muster_auto(doc) json_t *event = NULL;
    if (doc_parse(text, bytes, &event, NULL) == 0) {
        take_event(w, event);
    }
}

static void on_data(void *context, const char *bytes, size_t count)
{
    struct kube_watch *w = context;
    w->failures = 0;
    buf_add(&w->line, bytes, count);
    const char *end;
    while (!w->stopped && w->line.used > 0 && (end = memchr(w->line.data, '\n', w->line.used))) {
        size_t length = (size_t)(end - w->line.data);
        take_line(w, w->line.data, length);
        buf_consume(&w->line, length + 1);
    }
}

static void on_end(void *context, int code, const struct muster_err *err)
{
    (void)err;
    struct kube_watch *w = context;
    w->stream = NULL;
    w->expired = w->expired || code == MUSTER_EGONE;
    retry_later(w);
}

static int follow(struct kube_watch *w, struct muster_err *err)
{
    char more[96];
    snprintf(more, sizeof more, "watch=true&resourceVersion=%s", w->version);
    struct kube_query query = w->query;
    query.more = more;
    buf_clear(&w->line);
    struct kube_stream_events events = {on_data, on_end, w};
    return kube_stream_open(w->kube, &w->ref, &query, &events, &w->stream, err);
}

/* Ensures that a controller runs, then opens the same stream; it lists again only if the version is
 * too old. */
static void again(uv_timer_t *timer)
{
    struct kube_watch *w = timer->data;
    int r = kube_ensure(w->kube, NULL);
    if (r == 0 && w->expired) {
        r = list(w, NULL);
    }
    if (r == 0 && !w->stopped) {
        r = follow(w, NULL);
    }
    if (r < 0) {
        retry_later(w);
    }
}

/* Opens the watch again later: a wait for our own controller starts it; a cluster's API server
 * needs time. */
static void retry_later(struct kube_watch *w)
{
    if (!w->stopped) {
        uv_timer_start(&w->retry, again, (uint64_t)KUBE_RETRY_MS << w->failures, 0);
        w->failures += w->kube->is_cluster && w->failures < FAILURES_MAX;
    }
}

static void look(uv_timer_t *timer)
{
    struct kube *kube = ((struct kube_watch *)timer->data)->kube;
    if (kube->look) {
        kube->said = kube->look(kube, &kube->controller, kube->said);
    }
}

static void open_timers(struct kube_watch *w)
{
    uv_timer_init(w->kube->loop, &w->retry);
    uv_timer_init(w->kube->loop, &w->look);
    w->retry.data = w->look.data = w;
    w->open = 2;
    if (!w->kube->is_cluster) {
        uv_timer_start(&w->look, look, KUBE_LOOK_MS, KUBE_LOOK_MS);
    }
}

static void free_watch(uv_handle_t *handle)
{
    struct kube_watch *w = handle->data;
    if (--w->open > 0) {
        return;
    }
    json_decref(w->known);
    buf_done(&w->line);
    free(w->namespace);
    free(w->name);
    free(w->labels);
    free(w->fields);
    free(w);
}

void kube_watch_stop(struct kube_watch *watch)
{
    if (!watch || watch->stopped) {
        return;
    }
    watch->stopped = true;
    kube_stream_close(watch->stream);
    watch->stream = NULL;
    uv_close((uv_handle_t *)&watch->retry, free_watch);
    uv_close((uv_handle_t *)&watch->look, free_watch);
}

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

/* Copies the target; one object is watched as the collection that has only this object. */
static int copy_target(struct kube_watch *w, const struct kube_ref *ref,
                       const struct kube_query *query)
{
    if (ref->name && asprintf(&w->fields, "metadata.name=%s", ref->name) < 0) {
        w->fields = NULL;
    } else if (!ref->name) {
        w->fields = copy(query ? query->fields : NULL);
    }
    w->namespace = copy(ref->namespace);
    w->labels = copy(query ? query->labels : NULL);
    w->ref = (struct kube_ref){.resource = ref->resource, .namespace = w->namespace};
    w->query = (struct kube_query){
        .labels = w->labels, .fields = w->fields, .table = query && query->table};
    w->known = json_object();
    return w->known ? 0 : MUSTER_ENOMEM;
}

int kube_watch_start(struct kube *kube, const struct kube_ref *ref, const struct kube_query *query,
                     const struct kube_watch_events *events, struct kube_watch **ret,
                     struct muster_err *err)
{
    struct kube_watch *w = calloc(1, sizeof *w);
    if (!w) {
        return err_no_memory(err);
    }
    w->kube = kube;
    w->events = *events;
    open_timers(w);
    buf_init(&w->line, LINE_BYTES_MAX);
    int r = copy_target(w, ref, query) < 0 ? err_no_memory(err) : list(w, err);
    r = r < 0 ? r : follow(w, err);
    if (r < 0) {
        kube_watch_stop(w);
        return r;
    }
    *ret = w;
    return 0;
}
