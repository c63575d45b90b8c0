/* See fake.h: the objects, and what runs by itself. */
#include "internal.h"

#include "base/testing/test.h"
#include "base/testing/test_draw.h"
#include "base/time/timestamp.h"
#include "job/job.h"

#include <stdio.h>

#define EPOCH 1767225600000 /* 2026-01-01T00:00:00Z */

enum { RUN_MS = 3000, GRACE_MS = 2000, COLLECT_MS = 1000, EVICT_MS = 90000 };

/* ---- randomness, time ---- */

uint32_t fake_draw(struct fake *f, uint32_t below)
{
    return below > 0 ? test_draw(&f->random, below) : 0;
}

bool fake_chance(struct fake *f, uint32_t percent)
{
    return fake_draw(f, 100) < percent;
}

int64_t fake_lag(struct fake *f)
{
    return f->now_ms + fake_draw(f, f->faults.lag_ms + 1);
}

static int64_t now_ms(void *arg)
{
    return ((struct fake_driver *)arg)->fake->now_ms;
}

static int64_t now_unix_ms(void *arg)
{
    return EPOCH + now_ms(arg);
}

static void call_at(void *arg, int64_t at_ms)
{
    struct fake_driver *d = arg;
    d->wake_ms = at_ms;
}

/* ---- objects ---- */

static json_t *of_resource(const struct fake *f, const char *resource)
{
    json_t *map = json_object_get(f->objects, resource);
    if (!map) {
        map = json_object();
        json_object_set_new(f->objects, resource, map);
    }
    return map;
}

json_t *fake_get(const struct fake *f, const char *resource, const char *name)
{
    return json_object_get(of_resource(f, resource), name);
}

size_t fake_count(const struct fake *f, const char *resource)
{
    return json_object_size(of_resource(f, resource));
}

static void note(struct fake *f, const char *resource, bool gone, const json_t *object)
{
    json_array_append_new(f->log, json_pack("{s:s, s:b, s:o}", "resource", resource, "gone", gone,
                                            "object", json_deep_copy(object)));
}

static void set_version(struct fake *f, json_t *object)
{
    doc_set(object, "metadata.resourceVersion", json_sprintf("%lld", (long long)++f->version));
}

/* Takes the object. */
void fake_put(struct fake *f, const char *resource, json_t *object)
{
    const char *name = doc_text(object, "metadata.name", "");
    set_version(f, object);
    note(f, resource, false, object);
    json_object_set_new(of_resource(f, resource), name, object);
}

void fake_delete(struct fake *f, const char *resource, const char *name)
{
    json_t *object = json_incref(fake_get(f, resource, name));
    if (object) {
        json_t *last = json_deep_copy(object);
        set_version(f, last);
        note(f, resource, true, last);
        json_object_del(of_resource(f, resource), name);
        json_decref(last);
    }
    json_decref(object);
}

static bool name_ends(const json_t *object, const char *end)
{
    const char *name = doc_text(object, "metadata.name", "");
    size_t length = strlen(name);
    return length >= strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

void fake_set_node(struct fake *f, enum fake_node node)
{
    bool was_lost = f->lost_from_ms <= f->now_ms;
    bool same_silence = node != FAKE_NODE_ANSWERS && f->node != FAKE_NODE_ANSWERS;
    if (!same_silence) {
        f->silent_ms = f->now_ms;
    }
    f->node = node;
    f->lost_from_ms = node == FAKE_NODE_ANSWERS  ? INT64_MAX
                      : node == FAKE_NODE_SILENT ? f->silent_ms + FAKE_LOST_MS
                                                 : f->now_ms;
    if (was_lost && f->lost_from_ms > f->now_ms) {
        f->lost_until_ms = f->now_ms;
    }
    json_t *object = json_pack("{s:{s:s}, s:{s:[{s:s, s:s, s:o}]}}", "metadata", "name", "node-1",
                               "status", "conditions", "type", "Ready", "status",
                               node == FAKE_NODE_ANSWERS ? "True" : "Unknown", "lastTransitionTime",
                               json_sprintf("%lld", (long long)f->silent_ms));
    if (node == FAKE_NODE_OUT_OF_SERVICE) {
        doc_set(object, "spec",
                json_pack("{s:[{s:s}]}", "taints", "key", "node.kubernetes.io/out-of-service"));
    }
    fake_put(f, "nodes", object);
}

json_t *fake_create(struct fake *f, const char *resource, const json_t *body)
{
    char stamp[TIMESTAMP_BYTES];
    json_t *object = json_deep_copy(body);
    doc_set(object, "metadata.uid", json_sprintf("uid-%lld", (long long)++f->uids));
    doc_set_text(object, "metadata.creationTimestamp", timestamp_seconds(EPOCH + f->now_ms, stamp));
    if (strcmp(resource, "pods") == 0) {
        doc_set_text(object, "status.phase", "Pending");
        doc_set_int(object, "due", f->now_ms + fake_draw(f, RUN_MS));
        if (name_ends(object, "-1")) {
            doc_set_text(object, "spec.nodeName",
                         f->node == FAKE_NODE_ANSWERS ? "node-1" : "node-2");
        }
        f->pods_made++;
    }
    fake_put(f, resource, object);
    return object;
}

void fake_mark_deleted(struct fake *f, json_t *pod)
{
    char stamp[TIMESTAMP_BYTES];
    if (!doc_at(pod, "metadata.deletionTimestamp")) {
        json_t *copy = json_deep_copy(pod);
        doc_set_text(copy, "metadata.deletionTimestamp",
                     timestamp_seconds(EPOCH + f->now_ms, stamp));
        doc_set_int(copy, "due", f->now_ms + fake_draw(f, GRACE_MS));
        fake_put(f, "pods", copy);
    }
}

void fake_create_job(struct fake *f, json_t *job)
{
    fake_create(f, "pytorchjobs", job);
    json_decref(job);
}

void fake_patch_job(struct fake *f, const char *path, json_t *value)
{
    json_t *job = fake_get(f, "pytorchjobs", "case");
    if (!job) {
        json_decref(value);
        return;
    }
    json_t *copy = json_deep_copy(job);
    doc_set(copy, path, value);
    fake_put(f, "pytorchjobs", copy);
}

bool fake_job_is(const struct fake *f, const char *condition)
{
    return job_condition(fake_get(f, "pytorchjobs", "case"), condition);
}

/* ---- what runs by itself ---- */

/* The pod is Pending, Running, then Failed as often as its fate says, or Succeeded. */
static void advance_pod(struct fake *f, const json_t *pod)
{
    const char *name = doc_text(pod, "metadata.name", "");
    const char *phase = doc_text(pod, "status.phase", "");
    json_t *copy = json_deep_copy(pod);
    if (strcmp(phase, "Pending") == 0) {
        doc_set_text(copy, "status.phase", "Running");
    } else {
        json_int_t left = json_integer_value(json_object_get(f->fates, name));
        f->failures += left > 0;
        doc_set_text(copy, "status.phase", left > 0 ? "Failed" : "Succeeded");
        doc_set(copy, "status.containerStatuses",
                json_pack("[{s:s, s:i, s:{s:{s:i, s:s}}}]", "name", "pytorch", "restartCount", 0,
                          "state", "terminated", "exitCode", left > 0 ? 137 : 0, "reason", "Any"));
        json_object_set_new(f->fates, name, json_integer(left > 0 ? left - 1 : 0));
    }
    doc_set_int(copy, "due", f->now_ms + 1 + fake_draw(f, RUN_MS));
    fake_put(f, "pods", copy);
}

static bool is_silent(const struct fake *f, const json_t *pod)
{
    return f->node != FAKE_NODE_ANSWERS &&
           strcmp(doc_text(pod, "spec.nodeName", ""), "node-1") == 0;
}

/* Returns when something is due with the pod; INT64_MAX: never. */
static int64_t pod_due(const struct fake *f, const json_t *pod)
{
    const char *phase = doc_text(pod, "status.phase", "");
    const json_t *job = fake_get(f, "pytorchjobs", "case");
    const char *owner = doc_text(pod, "metadata.ownerReferences.0.uid", "");
    bool over = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
    if (is_silent(f, pod)) { /* nothing is reported about it; in the end it is evicted */
        return doc_at(pod, "metadata.deletionTimestamp") ? INT64_MAX : f->silent_ms + EVICT_MS;
    }
    if (doc_at(pod, "metadata.deletionTimestamp")) {
        return doc_int(pod, "due", 0);
    }
    if (strcmp(doc_text(job, "metadata.uid", ""), owner) != 0) {
        return doc_int(pod, "due", 0) + COLLECT_MS;
    }
    return over ? INT64_MAX : doc_int(pod, "due", 0);
}

static void run_pod(struct fake *f, json_t *pod)
{
    const json_t *job = fake_get(f, "pytorchjobs", "case");
    const char *owner = doc_text(pod, "metadata.ownerReferences.0.uid", "");
    if (is_silent(f, pod)) {
        fake_mark_deleted(f, pod);
    } else if (doc_at(pod, "metadata.deletionTimestamp")) {
        fake_delete(f, "pods", doc_text(pod, "metadata.name", ""));
    } else if (strcmp(doc_text(job, "metadata.uid", ""), owner) != 0) {
        fake_mark_deleted(f, pod); /* its owner is gone */
    } else {
        advance_pod(f, pod);
    }
}

static json_t *next_pod(const struct fake *f, int64_t *ret_due)
{
    json_t *next = NULL;
    const char *name;
    json_t *pod;
    *ret_due = INT64_MAX;
    json_object_foreach (of_resource(f, "pods"), name, pod) {
        if (pod_due(f, pod) < *ret_due) {
            *ret_due = pod_due(f, pod);
            next = pod;
        }
    }
    return next;
}

/* ---- life ---- */

void fake_init(struct fake *f, uint64_t seed)
{
    *f = (struct fake){.cluster = {&fake_backend},
                       .random = (seed + 1) * 0x9e3779b97f4a7c15ULL,
                       .objects = json_object(),
                       .log = json_array(),
                       .fates = json_object(),
                       .version = 100,
                       .lost_from_ms = INT64_MAX,
                       .lost_until_ms = INT64_MIN / 2,
                       .resync_ms = INT64_MAX / 4,
                       .now_ms = 1000};
}

void fake_done(struct fake *f)
{
    for (int i = 0; i < FAKE_DRIVERS; i++) {
        fake_stop(f, i);
    }
    fake_forget_requests(f);
    json_decref(f->objects);
    json_decref(f->log);
    json_decref(f->fates);
}

static void did(void *arg, const struct control_effect *effect, const json_t *before,
                const json_t *after)
{
    struct fake *f = ((struct fake_driver *)arg)->fake;
    f->counted.pods_created += control_is(effect, CONTROL_CREATE, CONTROL_POD);
    f->counted.pods_deleted += control_is(effect, CONTROL_DELETE, CONTROL_POD);
    f->counted.ends +=
        effect->verb == CONTROL_UPDATE_STATUS && job_is_finished(after) && !job_is_finished(before);
}

void fake_start(struct fake *f, int n)
{
    struct fake_driver *d = &f->drivers[n];
    *d = (struct fake_driver){.fake = f, .wake_ms = INT64_MAX};
    const struct driver_options options = {
        .cluster = &f->cluster,
        .clock = {now_ms, now_unix_ms, call_at, d},
        .autoscalers = true,
        .gang = f->gang,
        .resync_ms = f->resync_ms,
        .watch_nodes = true,
        .lost_after_ms = FAKE_LOST_MS,
        .did = did,
        .arg = d,
    };
    assert_int_equal(driver_new(&options, &d->driver, NULL), 0);
}

void fake_stop(struct fake *f, int n)
{
    f->drivers[n].driver = driver_free(f->drivers[n].driver);
}

static void earlier(int64_t at_ms, int what, int64_t *best_ms, int *best)
{
    if (at_ms < *best_ms) {
        *best_ms = at_ms;
        *best = what;
    }
}

bool fake_step(struct fake *f, int64_t until_ms)
{
    enum { NOTHING, POD, REQUEST, WATCH, DRIVER };
    int what = NOTHING;
    int64_t at_ms = INT64_MAX;
    int64_t pod_ms;
    json_t *pod = next_pod(f, &pod_ms);
    earlier(pod_ms, POD, &at_ms, &what);
    earlier(fake_requests_next(f), REQUEST, &at_ms, &what);
    earlier(fake_watches_next(f), WATCH, &at_ms, &what);
    for (int i = 0; i < FAKE_DRIVERS; i++) {
        if (f->drivers[i].driver) {
            earlier(f->drivers[i].wake_ms, DRIVER + i, &at_ms, &what);
        }
    }
    if (what == NOTHING || at_ms > until_ms) {
        f->now_ms = until_ms > f->now_ms ? until_ms : f->now_ms;
        return false;
    }
    f->now_ms = at_ms > f->now_ms ? at_ms : f->now_ms;
    switch (what) {
    case POD: run_pod(f, pod); break;
    case REQUEST: fake_requests_run(f); break;
    case WATCH: fake_watches_run(f); break;
    default: driver_turn(f->drivers[what - DRIVER].driver);
    }
    return true;
}
