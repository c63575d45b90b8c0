/* See driver.h: watches, the queue, and turns. */
#include "base/doc.h"
#include "base/err.h"
#include "controller/fair_share.h"
#include "controller/internal.h"
#include "controller/planted.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

enum {
    STEPS_PER_TURN = 16,
    OF_NAMESPACE_MAX = 16,
    OBJECTS_MAX = 500000,
    RESYNC_APART_MS = 10,
    SILENCE_MS = 5000
};

const struct cluster_resource driver_resources[CONTROL_RESOURCES] = {
    [CONTROL_JOB] = {"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", true},
    [CONTROL_POD] = {"", "v1", "pods", "Pod", true},
    [CONTROL_SERVICE] = {"", "v1", "services", "Service", true},
    [CONTROL_CLAIM] = {"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true},
    [CONTROL_AUTOSCALER] = {"autoscaling", "v2", "horizontalpodautoscalers",
                            "HorizontalPodAutoscaler", true},
    [CONTROL_VOLCANO_GROUP] = {"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", true},
    [CONTROL_PLUGINS_GROUP] = {"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", true},
};
const struct cluster_resource driver_events = {"", "v1", "events", "Event", true};

void driver_say(const struct driver *d, const char *what, const char *key, const char *sentence)
{
    if (d->options.say) {
        d->options.say(d->options.arg, what, key, sentence);
    }
}

void driver_arm(struct driver *d)
{
    int64_t queue = cache_is_synced(&d->cache) ? queue_next(&d->queue) : INT64_MAX;
    int64_t tasks = driver_tasks_next(d);
    int64_t next = tasks < queue ? tasks : queue;
    next = d->resync_at_ms < next ? d->resync_at_ms : next;
    d->options.clock.call_at(d->options.clock.arg, next);
}

/* ---- requests ---- */

struct call *driver_call(struct driver *d,
                         void (*done)(struct call *, const struct cluster_answer *))
{
    struct call *call = calloc(1, sizeof *call);
    if (call) {
        call->driver = d;
        call->done = done;
        DL_APPEND(d->calls, call);
    }
    return call;
}

static void free_call(struct call *call)
{
    DL_DELETE(call->driver->calls, call);
    driver_forget_event(call);
    free(call);
}

/* The cluster has answered. After a silence, keys that failed for lack of an answer are tried again
 * soon, however long they had to wait: each at another time, and within the budget of requests.
 * While the cluster answers other requests, a request without an answer waits as after other
 * failures. */
static void heard(struct driver *d)
{
    int64_t now_ms = driver_now_ms(d);
    if (now_ms - d->heard_ms > SILENCE_MS) {
        queue_heard(&d->queue, now_ms);
    }
    d->heard_ms = now_ms;
}

static void on_answer(void *arg, const struct cluster_answer *answer)
{
    struct call *call = arg;
    struct driver *d = call->driver;
    call->sent = NULL;
    if (!cluster_was_silent(answer)) {
        heard(d);
    }
    call->done(call, answer);
    free_call(call);
    driver_arm(d); /* a step may have ended, and waits for the watches */
}

int driver_send(struct call *call, const struct cluster_request *request)
{
    struct cluster *cluster = call->driver->options.cluster;
    int r = cluster->backend->send(cluster, request, on_answer, call, &call->sent, NULL);
    if (r < 0) {
        free_call(call);
    }
    return r;
}

/* ---- watches ---- */

static void add(struct driver *d, const char *key)
{
    if (queue_add(&d->queue, key, driver_now_ms(d)) < 0) {
        driver_say(d, "controller.queue", key, "no room: its changes are not seen");
    }
}

/* Tells the job's task what a watch has shown, and queues the job. All jobs of a claim's namespace
 * may wait for the claim; since they create claims themselves, no job needs a step for it. */
static void shown(struct watch *w, const struct cache_change *change)
{
    struct driver *d = w->driver;
    struct task *task = NULL;
    if (w->resource == CONTROL_CLAIM) {
        for (task = d->tasks; task; task = task->hh.next) {
            expect_shown(&task->flow.expected, w->resource, change->name, change->uid,
                         change->version, change->gone);
        }
        return;
    }
    HASH_FIND_STR(d->tasks, change->job, task);
    if (task) {
        expect_shown(&task->flow.expected, w->resource, change->name, change->uid, change->version,
                     change->gone);
        driver_task_shown(d, change->job);
    }
    add(d, change->job);
}

static void tell_gone(const struct watch *w, const char *job)
{
    const struct driver_options *o = &w->driver->options;
    if (w->resource == CONTROL_JOB) {
        driver_forget_doubts(w->driver, job);
    }
    if (w->resource == CONTROL_JOB && o->gone) {
        o->gone(o->arg, job);
    }
}

static void on_gone(void *arg, const char *job)
{
    struct watch *w = arg;
    tell_gone(w, job);
    if (*job) {
        add(w->driver, job);
    }
}

/* Whether jobs can do without this resource, if a cluster lacks it. */
static bool is_optional(enum control_resource resource)
{
    return resource >= CONTROL_AUTOSCALER;
}

static bool is_made(const struct driver_options *o, enum control_resource resource)
{
    return resource == CONTROL_AUTOSCALER
               ? o->autoscalers
               : o->gang.kind != CONTROL_GANG_NONE && control_gang_resource(&o->gang) == resource;
}

static void add_live_job(void *arg, const char *key)
{
    add(arg, key);
}

static void synced(struct watch *w, const char *version)
{
    struct driver *d = w->driver;
    if (cache_is_absent(&d->cache, w->resource)) { /* the resource appeared after all */
        cache_each_live_job(&d->cache, add_live_job, d);
    }
    cache_synced(&d->cache, w->resource, on_gone, w);
    driver_look_at_doubts(d, NULL);
    struct task *task, *next;
    HASH_ITER (hh, d->tasks, task, next) {
        expect_listed(&task->flow.expected, w->resource, version);
        driver_task_shown(d, task->key);
    }
}

/* Reports trouble with an optional resource once; its watch keeps trying. */
static void trouble(struct watch *w, const struct cluster_change *news)
{
    struct driver *d = w->driver;
    const struct cluster_resource *resource = &driver_resources[w->resource];
    bool refused = news->code == MUSTER_ENOENT || news->code == MUSTER_EPERM;
    if (!is_optional(w->resource) || !refused) {
        driver_say(d, "controller.watch", "", news->message);
    } else if (!cache_is_absent(&d->cache, w->resource)) {
        char sentence[512];
        snprintf(sentence, sizeof sentence,
                 "%s of %s/%s are not made until they can be watched: %s", resource->plural,
                 resource->group, resource->version, news->message);
        driver_say(d, "controller.absent", "", sentence);
        cache_set_absent(&d->cache, w->resource);
    }
}

static void on_change(void *arg, const struct cluster_change *news)
{
    struct watch *w = arg;
    struct driver *d = w->driver;
    struct cache_change change = {0};
    int r = 0;
    if (news->news != CLUSTER_TROUBLE) {
        heard(d);
    }
    switch (news->news) {
    case CLUSTER_BEGIN: cache_begin(&d->cache, w->resource); break;
    case CLUSTER_OBJECT: r = cache_put(&d->cache, w->resource, news->object, &change); break;
    case CLUSTER_GONE: cache_remove(&d->cache, w->resource, news->object, &change); break;
    case CLUSTER_SYNCED: synced(w, news->version); break;
    case CLUSTER_BOOKMARK: break;
    case CLUSTER_ANSWERED: break;
    case CLUSTER_TROUBLE: trouble(w, news); break;
    }
    if (r < 0) {
        driver_say(d, "controller.cache", change.job, muster_code_text(r));
    }
    bool unseen = PLANTED_DRIVER(END_UNSEEN) && news->news == CLUSTER_GONE;
    if (change.changed && !unseen) {
        shown(w, &change);
        driver_look_at_doubts(d, change.job);
    }
    if (change.changed && news->news == CLUSTER_GONE) {
        tell_gone(w, change.job);
    }
    driver_arm(d);
}

static int start_watch(struct driver *d, enum control_resource resource, struct muster_err *err)
{
    struct watch *w = &d->watches[resource];
    bool labelled = resource != CONTROL_JOB && !is_optional(resource); /* upstream's have none */
    const struct cluster_scope scope = {.resource = &driver_resources[resource],
                                        .namespace = d->options.namespace,
                                        .labels = labelled ? d->options.labels : NULL,
                                        .without_managers = resource != CONTROL_JOB};
    struct cluster *cluster = d->options.cluster;
    w->driver = d;
    w->resource = resource;
    if (cache_is_absent(&d->cache, resource)) {
        return 0;
    }
    return cluster->backend->watch(cluster, &scope, on_change, w, &w->watch, err);
}

/* Must be called before any watch starts: the first steps may be due when the last watch has its
 * objects. */
static void leave_out_optional(struct driver *d)
{
    for (enum control_resource i = 0; i < CONTROL_RESOURCES; i++) {
        if (is_optional(i) && !is_made(&d->options, i)) {
            cache_set_absent(&d->cache, i);
        }
    }
}

/* ---- life ---- */

int driver_new(const struct driver_options *options, struct driver **ret, struct muster_err *err)
{
    struct driver *d = calloc(1, sizeof *d);
    if (!d) {
        return err_no_memory(err);
    }
    d->options = *options;
    size_t side_by_side = options->jobs_side_by_side;
    size_t objects = options->objects_max ? options->objects_max : OBJECTS_MAX;
    d->options.jobs_side_by_side =
        side_by_side ? side_by_side : fair_share_places(OF_NAMESPACE_MAX);
    int64_t resync = options->resync_ms;
    d->options.resync_ms = resync ? resync : DRIVER_RESYNC_MS;
    d->resync_at_ms = driver_now_ms(d) + d->options.resync_ms;
    d->heard_ms = driver_now_ms(d);
    cache_init(&d->cache, objects);
    queue_init(&d->queue, objects, d->options.jobs_side_by_side);
    leave_out_optional(d);
    int r = 0;
    for (enum control_resource i = 0; i < CONTROL_RESOURCES && r == 0; i++) {
        r = start_watch(d, i, err);
    }
    r = r == 0 && options->watch_nodes ? driver_watch_nodes(d, err) : r;
    if (r < 0) {
        driver_free(d);
        return r;
    }
    *ret = d;
    return 0;
}

struct driver *driver_free(struct driver *d)
{
    if (!d) {
        return NULL;
    }
    const struct cluster_backend *backend = d->options.cluster->backend;
    for (int i = 0; i < CONTROL_RESOURCES; i++) {
        backend->unwatch(d->watches[i].watch);
    }
    backend->unwatch(d->node_watch);
    struct call *call, *next_call;
    DL_FOREACH_SAFE (d->calls, call, next_call) {
        if (call->sent) {
            backend->cancel(call->sent);
        }
        free_call(call);
    }
    struct task *task, *next;
    HASH_ITER (hh, d->tasks, task, next) {
        driver_task_free(task);
    }
    d->options.clock.call_at(d->options.clock.arg, INT64_MAX);
    driver_forget_doubts(d, NULL);
    cache_done(&d->cache);
    queue_done(&d->queue);
    nodes_done(&d->nodes);
    free(d);
    return NULL;
}

static void resync_job(void *arg, const char *key)
{
    struct driver *d = arg;
    int64_t apart = (int64_t)d->resynced++ * RESYNC_APART_MS;
    (void)queue_add_at(&d->queue, key, driver_now_ms(d) + apart);
}

/* Gives a step to each live job, in case nothing has woken it. */
static void resync_if_due(struct driver *d, int64_t now)
{
    if (now >= d->resync_at_ms) {
        d->resynced = 0;
        d->resync_at_ms = now + d->options.resync_ms;
        cache_each_live_job(&d->cache, resync_job, d);
    }
}

void driver_use_restart_rules(struct driver *d)
{
    d->options.restart_rules = true;
}

void driver_turn(struct driver *d)
{
    int64_t now = driver_now_ms(d);
    resync_if_due(d, now);
    driver_tasks_expire(d, now);
    for (int i = 0; i < STEPS_PER_TURN && cache_is_synced(&d->cache); i++) {
        const char *key = queue_take(&d->queue, now);
        if (!key) {
            break;
        }
        driver_step(d, key);
    }
    driver_arm(d);
}

bool driver_is_synced(const struct driver *d)
{
    return cache_is_synced(&d->cache);
}

size_t driver_live_jobs(const struct driver *d)
{
    return cache_live_jobs(&d->cache) + HASH_COUNT(d->tasks) + d->events + d->queue.ready_count;
}

struct driver_numbers driver_numbers(const struct driver *d)
{
    return (struct driver_numbers){.queue_adds = d->queue.adds,
                                   .queue_retries = d->queue.retries,
                                   .events_left_out = d->events_left_out,
                                   .queue_waited = &d->queue.waited,
                                   .queue_worked = &d->queue.worked,
                                   .queue_depth = d->queue.ready_count,
                                   .steps = HASH_COUNT(d->tasks),
                                   .steps_max = d->options.jobs_side_by_side,
                                   .live_jobs = driver_live_jobs(d)};
}

bool driver_is_busy(const struct driver *d)
{
    return d->calls || d->tasks || cache_live_jobs(&d->cache) > 0 || queue_busy(&d->queue) > 0;
}
