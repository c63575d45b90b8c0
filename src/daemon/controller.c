/* See controller.h. */
#include "daemon/controller.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/time/clock.h"
#include "control/control.h"
#include "daemon/effects.h"
#include "daemon/object/jobs.h"

#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum { RETRY_MS = 1000, STEPS_PER_TURN = 16 };

/* One job, by namespace/name; lives as long as the job's object. */
struct entry {
    struct controller *controller;
    char *key; /* "namespace/name" */
    uv_timer_t timer;
    bool queued;
    bool live;
    struct entry *prev, *next; /* in the queue */
    UT_hash_handle hh;
};

struct controller {
    uv_loop_t *loop;
    struct store *store;
    struct store_watch *watch;
    struct entry *entries;
    struct entry *queue;
    uv_idle_t idle; /* runs while the queue holds something */
};

static void on_idle(uv_idle_t *idle);

static void enqueue(struct entry *entry)
{
    if (!entry->queued) {
        entry->queued = true;
        DL_APPEND(entry->controller->queue, entry);
        uv_idle_start(&entry->controller->idle, on_idle);
    }
}

static struct entry *entry_of(struct controller *c, const char *namespace, const char *name)
{
    muster_auto(free) char *key = NULL;
    if (asprintf(&key, "%s/%s", namespace, name) < 0) {
        key = NULL;
        return NULL;
    }
    struct entry *entry = NULL;
    HASH_FIND_STR(c->entries, key, entry);
    if (!entry) {
        entry = calloc(1, sizeof *entry);
        if (!entry) {
            return NULL;
        }
        entry->controller = c;
        entry->key = muster_take(key);
        entry->timer.data = entry;
        uv_timer_init(c->loop, &entry->timer);
        HASH_ADD_KEYPTR(hh, c->entries, entry->key, strlen(entry->key), entry);
    }
    return entry;
}

static void free_entry(uv_handle_t *handle)
{
    struct entry *entry = handle->data;
    free(entry->key);
    free(entry);
}

static void drop_entry(struct entry *entry)
{
    struct controller *c = entry->controller;
    HASH_DEL(c->entries, entry);
    if (entry->queued) {
        DL_DELETE(c->queue, entry);
    }
    uv_close((uv_handle_t *)&entry->timer, free_entry);
}

/* The job that a change is about: the job itself, or the one that owns the object. */
static const char *job_of(const struct store_change *change)
{
    if (strcmp(change->key.resource, "pytorchjobs") == 0) {
        return change->key.name;
    }
    const json_t *owners = doc_at(change->object, "metadata.ownerReferences");
    return doc_text(doc_find(owners, "kind", "PyTorchJob"), "name", NULL);
}

static void on_change(void *arg, const struct store_change *change)
{
    struct controller *c = arg;
    const char *name = job_of(change);
    struct entry *entry = name ? entry_of(c, change->key.namespace, name) : NULL;
    if (entry) {
        enqueue(entry);
    }
}

static void on_timer(uv_timer_t *timer)
{
    enqueue(timer->data);
}

static void wake_at(struct entry *entry, int64_t at_unix_ms)
{
    int64_t delay = at_unix_ms - clock_unix_ms();
    uv_update_time(entry->controller->loop);
    uv_timer_start(&entry->timer, on_timer, delay > 0 ? (uint64_t)delay : 0, 0);
}

static json_t *owned(struct controller *c, const char *resource, const char *namespace,
                     const char *uid, struct muster_err *err)
{
    const struct store_query query = {
        .resource = resource, .namespace = namespace, .owner_uid = uid};
    struct store_page page = {0};
    if (store_list(c->store, &query, &page, err) < 0) {
        return NULL;
    }
    json_t *items = json_incref(page.items);
    store_page_done(&page);
    return items;
}

/* Claims outlive the job that made them, so they are not owned: all of the namespace are shown. */
static json_t *claims(struct controller *c, const char *namespace, struct muster_err *err)
{
    return owned(c, "persistentvolumeclaims", namespace, NULL, err);
}

/* One step of one job: read the view, decide, write. */
static int reconcile(struct entry *entry, json_t *job, struct muster_err *err)
{
    struct controller *c = entry->controller;
    const char *namespace = doc_text(job, "metadata.namespace", "");
    const char *uid = doc_text(job, "metadata.uid", "");
    muster_auto(doc) json_t *pods = owned(c, "pods", namespace, uid, err);
    muster_auto(doc) json_t *services = owned(c, "services", namespace, uid, err);
    muster_auto(doc) json_t *all_claims = claims(c, namespace, err);
    if (!pods || !services || !all_claims) {
        return err->code;
    }
    const struct control_view view = {.job = job,
                                      .pods = pods,
                                      .services = services,
                                      .claims = all_claims,
                                      .now_unix_ms = clock_unix_ms()};
    struct control_effects effects;
    int r = control_reconcile(&view, &effects, err);
    if (r < 0) {
        return r;
    }
    int64_t wake = INT64_MAX;
    r = effects_apply(c->store, &view, &effects, &wake, err);
    control_effects_done(&effects);
    if (r == 0 && wake != INT64_MAX) {
        wake_at(entry, wake);
    }
    return r;
}

static void step(struct entry *entry)
{
    struct controller *c = entry->controller;
    struct muster_err err = MUSTER_ERR_INIT;
    muster_auto(free) char *namespace = strdup(entry->key);
    char *slash = namespace ? strchr(namespace, '/') : NULL;
    if (!slash) {
        wake_at(entry, clock_unix_ms() + RETRY_MS);
        return;
    }
    *slash = '\0';
    muster_auto(doc) json_t *job = NULL;
    int r =
        store_get(c->store, (struct store_key){"pytorchjobs", namespace, slash + 1}, &job, &err);
    if (r == MUSTER_ENOENT) {
        drop_entry(entry);
        return;
    }
    uv_timer_stop(&entry->timer);
    r = r < 0 ? r : reconcile(entry, job, &err);
    entry->live = r < 0 || !jobs_is_finished(job);
    if (r == MUSTER_ECONFLICT) { /* somebody was faster: look again */
        enqueue(entry);
    } else if (r < 0) {
        log_event(LOG_WARN, "controller.retry", "%s: %s", entry->key, err.text);
        wake_at(entry, clock_unix_ms() + RETRY_MS);
    }
}

static void on_idle(uv_idle_t *idle)
{
    struct controller *c = idle->data;
    for (int i = 0; i < STEPS_PER_TURN && c->queue; i++) {
        struct entry *entry = c->queue;
        DL_DELETE(c->queue, entry);
        entry->queued = false;
        step(entry);
    }
    if (!c->queue) {
        uv_idle_stop(&c->idle);
    }
}

static int queue_all(struct controller *c, struct muster_err *err)
{
    struct store_page page = {0};
    int r = store_list(c->store, &(struct store_query){.resource = "pytorchjobs"}, &page, err);
    if (r < 0) {
        return r;
    }
    size_t i;
    json_t *job;
    json_array_foreach (page.items, i, job) {
        struct entry *entry = entry_of(c, doc_text(job, "metadata.namespace", ""),
                                       doc_text(job, "metadata.name", ""));
        if (entry) {
            entry->live = !jobs_is_finished(job);
            enqueue(entry);
        }
    }
    store_page_done(&page);
    return 0;
}

static void free_self(uv_handle_t *handle)
{
    free(handle->data);
}

int controller_new(uv_loop_t *loop, struct store *store, struct controller **ret,
                   struct muster_err *err)
{
    struct controller *c = calloc(1, sizeof *c);
    if (!c) {
        return err_no_memory(err);
    }
    c->loop = loop;
    c->store = store;
    c->idle.data = c;
    uv_idle_init(loop, &c->idle);
    const struct store_watch_options everything = {.after_version = STORE_FROM_NOW};
    int r = store_watch(store, &everything, on_change, c, &c->watch, err);
    r = r < 0 ? r : queue_all(c, err);
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
    if (c->watch) {
        store_unwatch(c->watch);
    }
    struct entry *entry, *next;
    HASH_ITER (hh, c->entries, entry, next) {
        drop_entry(entry);
    }
    uv_close((uv_handle_t *)&c->idle, free_self);
    return NULL;
}

size_t controller_live_jobs(const struct controller *c)
{
    size_t count = 0;
    for (const struct entry *entry = c->entries; entry; entry = entry->hh.next) {
        count += entry->live || entry->queued;
    }
    return count;
}

bool controller_busy(const struct controller *c)
{
    for (const struct entry *entry = c->entries; entry; entry = entry->hh.next) {
        if (entry->live || entry->queued || uv_is_active((const uv_handle_t *)&entry->timer)) {
            return true;
        }
    }
    return false;
}
