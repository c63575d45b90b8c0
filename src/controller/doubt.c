/* Keeps writes that are in doubt: their answers were lost, or the server asked for another try. The
 * cache shows later whether such a write was carried out, or the next try finds that it was. Then
 * the write is reported and counted once, as if it had been answered. A doubt holds copies or
 * references; it is kept until the write is seen, the same write is made again, or the job is gone.
 * See internal.h.
 */
#include "base/doc.h"
#include "control/effects.h"
#include "controller/internal.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { DOUBTS_MAX = 4096 }; /* further doubts are not counted */

struct doubt {
    struct doubt *prev, *next;
    bool asked;                /* it was sent again */
    json_t *job;               /* before the write */
    struct control_effects fx; /* the write, and its events */
    char key[];
};

static void forget(struct driver *d, struct doubt *doubt)
{
    DL_DELETE(d->doubts, doubt);
    d->doubt_count--;
    json_decref(doubt->job);
    control_effects_done(&doubt->fx);
    free(doubt);
}

static bool is_part(const struct control_effect *e)
{
    return (e->resource == CONTROL_POD || e->resource == CONTROL_SERVICE) &&
           (e->verb == CONTROL_CREATE || e->verb == CONTROL_DELETE);
}

static bool is_same(const struct control_effect *a, const struct control_effect *b)
{
    return a->verb == b->verb && (a->verb == CONTROL_UPDATE_STATUS ||
                                  (a->resource == b->resource && strcmp(a->name, b->name) == 0));
}

static struct doubt *find(struct driver *d, const char *key, const struct control_effect *e)
{
    struct doubt *doubt;
    DL_FOREACH (d->doubts, doubt) {
        if (strcmp(doubt->key, key) == 0 && is_same(&doubt->fx.list[0], e)) {
            return doubt;
        }
    }
    return NULL;
}

/* ---- what the cache says ---- */

static bool has_status(const struct driver *d, const struct doubt *doubt)
{
    json_t *job = cache_job_object(&d->cache, doubt->key);
    bool has = json_equal(doc_at(job, "status"), doubt->fx.list[0].object);
    json_decref(job);
    return has;
}

/* Whether a pod's or Service's creation or deletion is visible in the cache. */
static bool part_is_seen(const struct driver *d, const json_t *job, const struct control_effect *e)
{
    const char *namespace = doc_text(job, "metadata.namespace", "");
    const char *owner = doc_text(job, "metadata.uid", "");
    return e->verb == CONTROL_CREATE
               ? cache_is_of(&d->cache, e->resource, namespace, e->name, owner)
               : cache_shows_end(&d->cache, namespace, e);
}

static bool is_seen(const struct driver *d, const struct doubt *doubt)
{
    const struct control_effect *e = &doubt->fx.list[0];
    return e->verb == CONTROL_UPDATE_STATUS ? has_status(d, doubt) : part_is_seen(d, doubt->job, e);
}

static void tell(struct driver *d, struct doubt *doubt)
{
    const struct driver_options *o = &d->options;
    json_t *now = cache_job_object(&d->cache, doubt->key);
    const json_t *after = now ? now : doubt->job;
    if (o->did) {
        o->did(o->arg, &doubt->fx.list[0], doubt->job, after);
    }
    for (size_t i = 1; i < doubt->fx.count; i++) {
        driver_tell(d, after, &doubt->fx.list[i]);
    }
    json_decref(now);
}

void driver_look_at_doubts(struct driver *d, const char *key)
{
    struct doubt *doubt, *next;
    DL_FOREACH_SAFE (d->doubts, doubt, next) {
        bool meant = !key || strcmp(doubt->key, key) == 0;
        if (meant && !doubt->asked && is_seen(d, doubt)) {
            tell(d, doubt);
            forget(d, doubt);
        }
    }
}

/* ---- doubting ---- */

/* Copies the events of a write: for a status all independent events, for another write the event
 * that follows it. */
static void copy_news(struct control_effects *to, const struct control_effects *from, size_t item)
{
    bool status = from->list[item].verb == CONTROL_UPDATE_STATUS;
    for (size_t i = 0; i < from->count; i++) {
        const struct control_effect *e = &from->list[i];
        bool told = status ? !e->of_previous : e->of_previous && i == item + 1;
        if (e->verb == CONTROL_RECORD_EVENT && told) {
            control_add_event(to, e->warning, e->name, "%s", e->text);
        }
    }
}

static void add(struct task *task, size_t item, json_t *job)
{
    struct driver *d = task->driver;
    size_t bytes = strlen(task->key) + 1;
    struct doubt *doubt = d->doubt_count < DOUBTS_MAX ? calloc(1, sizeof *doubt + bytes) : NULL;
    if (!doubt) {
        return;
    }
    doubt->job = json_incref(job);
    memcpy(doubt->key, task->key, bytes);
    DL_APPEND(d->doubts, doubt);
    d->doubt_count++;
    control_add_copy(&doubt->fx, &task->flow.fx.list[item]);
    copy_news(&doubt->fx, &task->flow.fx, item);
    if (doubt->fx.failed) {
        forget(d, doubt);
    }
}

bool driver_ask_again(struct task *task, size_t item)
{
    const struct control_effect *e = &task->flow.fx.list[item];
    struct doubt *doubt = find(task->driver, task->key, e);
    if (doubt) {
        doubt->asked = true;
    }
    return !doubt && is_part(e) && part_is_seen(task->driver, task->flow.job, e);
}

/* Keeps or adds the doubt. If the name is taken, the flow looks at the object next, and the doubt
 * waits for that. */
static void stay_in_doubt(struct task *task, size_t item, const struct cluster_answer *got,
                          bool unsure, json_t *job)
{
    const struct control_effect *e = &task->flow.fx.list[item];
    struct doubt *old = find(task->driver, task->key, e);
    if (!old && unsure && (is_part(e) || e->verb == CONTROL_UPDATE_STATUS)) {
        add(task, item, job);
        old = find(task->driver, task->key, e);
    }
    if (old) {
        old->asked = got->code == MUSTER_EEXIST;
    }
    driver_look_at_doubts(task->driver, task->key);
}

/* Returns true if the write was in doubt. */
static bool settle(struct task *task, size_t item)
{
    struct doubt *doubt = find(task->driver, task->key, &task->flow.fx.list[item]);
    if (doubt) {
        forget(task->driver, doubt);
    }
    return doubt != NULL;
}

/* If an earlier request had no answer, and its effect is found, then that request did it. An object
 * that is being deleted can be deleted again. */
void driver_note_answer(const struct call *call, const struct cluster_answer *got, json_t *job)
{
    struct task *task = call->task;
    const struct driver_options *o = &task->driver->options;
    const struct control_effect *e = &task->flow.fx.list[call->item];
    bool wrote = (got->code == 0 || got->repeated) && !call->reads &&
                 !(e->verb == CONTROL_DELETE && call->idle);
    if (!flow_is_done(&task->flow, call->item)) {
        bool unsure = (got->unsure || got->repeated) && !call->reads && !call->idle;
        stay_in_doubt(task, call->item, got, unsure, job);
    } else if ((settle(task, call->item) || wrote) && o->did) {
        o->did(o->arg, e, job, task->flow.job);
    }
}

void driver_forget_doubts(struct driver *d, const char *key)
{
    struct doubt *doubt, *next;
    DL_FOREACH_SAFE (d->doubts, doubt, next) {
        if (!key || strcmp(doubt->key, key) == 0) {
            forget(d, doubt);
        }
    }
}
