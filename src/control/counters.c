/* See counters.h. */
#include "control/counters.h"

#include "base/backoff.h"
#include "base/build.h"
#include "base/doc.h"
#include "control/failure.h"
#include "job/annotations.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The key of JOB_ANNOTATION_COUNTED that is no pod: whose counts these are. */
#define OWNER "job"

enum { ENTRIES_SPARE = 64 };

static const char *note_text(const struct job *job, const char *key)
{
    const json_t *notes = doc_at(job->object, "metadata.annotations");
    return json_string_value(json_object_get(notes, key));
}

/* An annotation that a user has damaged counts as empty. NULL without memory. */
static json_t *note_object(const struct job *job, const char *key)
{
    const char *text = note_text(job, key);
    json_t *doc = NULL;
    int r = text ? doc_parse(text, strlen(text), &doc, NULL) : 0;
    if (r == MUSTER_ENOMEM || (doc && json_is_object(doc))) {
        return doc;
    }
    json_decref(doc);
    return json_object();
}

static int64_t annotation_number(const struct job *job, const char *key)
{
    const char *text = note_text(job, key);
    int64_t value = text ? strtoll(text, NULL, 10) : 0;
    return 0 < value && value < INT32_MAX ? value : 0;
}

/* Annotations travel when people export a job and create it again: what another job counted is
 * forgotten. */
static bool is_anothers(const struct job *job, const json_t *counted)
{
    const char *owner = doc_text(counted, OWNER, NULL);
    return owner && strcmp(owner, job->uid) != 0;
}

static void read_annotations(struct build *b, const struct job *job, struct control_counters *ret)
{
    *ret = (struct control_counters){.failures = annotation_number(job, JOB_ANNOTATION_FAILURES),
                                     .counted = note_object(job, JOB_ANNOTATION_COUNTED),
                                     .restarts = note_object(job, JOB_ANNOTATION_RESTARTS),
                                     .new_failures = json_array()};
    if (is_anothers(job, ret->counted)) {
        ret->failures = 0;
        json_object_clear(ret->counted);
        json_object_clear(ret->restarts);
    }
    b->failed |= !ret->counted || !ret->restarts || !ret->new_failures;
    build_text(b, ret->counted, OWNER, job->uid);
}

static const char *slot_name(enum job_role role, int index, char ret_name[32])
{
    snprintf(ret_name, 32, "%s-%d", job_role_lower(role), index);
    return ret_name;
}

/* A number that a damaged annotation cannot make overflow. */
static int64_t sane(const json_t *entry, const char *field)
{
    int64_t value = doc_int(entry, field, 0);
    return 0 <= value && value < INT64_MAX / 4 ? value : 0;
}

int64_t control_not_before(const struct control_counters *counters, enum job_role role, int index)
{
    assert(role < JOB_ROLE_COUNT && index >= 0);
    char slot[32];
    const json_t *entry = json_object_get(counters->restarts, slot_name(role, index, slot));
    int64_t at = sane(entry, "at");
    return at ? at + backoff_ms(sane(entry, "count")) : 0;
}

static int64_t failed_at(const struct control_member *pod, int64_t now)
{
    struct control_failure failure = control_pod_failure(pod->object, true);
    bool known = failure.found && failure.at_unix_ms > 0 && failure.at_unix_ms < now;
    return known ? failure.at_unix_ms : now;
}

/* A pod that is to be made again is noted once, under its uid. True: noted now. */
static bool count_restart(struct build *b, struct control_counters *m,
                          const struct control_member *pod, int64_t now)
{
    char slot[32];
    slot_name(pod->role, pod->index, slot);
    const json_t *old = json_object_get(m->restarts, slot);
    if (strcmp(doc_text(old, "uid", ""), pod->uid) == 0) {
        return false;
    }
    int64_t at = failed_at(pod, now);
    bool quiet = at - sane(old, "at") > BACKOFF_RESET_MS;
    int64_t count = quiet ? 1 : sane(old, "count") + 1;
    build_set(b, m->restarts, slot,
              json_pack("{s:s, s:I, s:I}", "uid", pod->uid, "count", (json_int_t)count, "at",
                        (json_int_t)at));
    return true;
}

static bool remakes(const struct control_observed *o, const struct control_member *pod)
{
    return o->job->max_restarts == JOB_UNSET && pod->in_range && !pod->terminating &&
           pod->phase == CONTROL_FAILED_PHASE &&
           o->job->replica[pod->role].restart_policy != JOB_NEVER;
}

/* What we kill ourselves (pods that are terminating) is no failure. */
static bool count_pod(struct build *b, struct control_counters *m, const struct control_member *pod)
{
    if (!pod->in_range || pod->terminating) {
        return false;
    }
    int64_t seen = control_count_failures(pod->object);
    const json_t *entry = json_object_get(m->counted, pod->uid);
    int64_t counted = json_is_integer(entry) ? (int64_t)json_integer_value(entry) : 0;
    if (seen <= counted || counted < 0) {
        return false;
    }
    assert(pod->known && m->failures >= 0);
    m->failures += seen - counted;
    build_int(b, m->counted, pod->uid, seen);
    build_add(b, m->new_failures, json_string(pod->uid));
    return true;
}

static bool in_view(const struct control_observed *o, const char *uid)
{
    for (size_t i = 0; i < o->pod_count; i++) {
        if (strcmp(o->pods[i].uid, uid) == 0) {
            return true;
        }
    }
    return false;
}

/* Pods that are gone need not be known any more. Some are kept: an old view may show them again. */
static void forget_gone(const struct control_observed *o, struct control_counters *m)
{
    size_t most = 2 * o->pod_count + ENTRIES_SPARE;
    const char *uid;
    json_t *value;
    void *next;
    json_object_foreach_safe (m->counted, next, uid, value) {
        if (json_object_size(m->counted) <= most) {
            break;
        }
        if (strcmp(uid, OWNER) != 0 && !in_view(o, uid)) {
            json_object_del(m->counted, uid);
        }
    }
}

static void set_text_of(struct build *b, json_t *notes, const char *key, const json_t *doc)
{
    char *text = doc_print(doc);
    build_set(b, notes, key, text ? json_string(text) : NULL);
    free(text);
}

static void write_annotations(struct build *b, struct control_counters *m, bool counted,
                              bool restarts)
{
    if (counted || restarts) {
        m->changed = build_value(b, json_object());
    }
    if (counted) {
        build_set(b, m->changed, JOB_ANNOTATION_FAILURES,
                  json_sprintf("%lld", (long long)m->failures));
        set_text_of(b, m->changed, JOB_ANNOTATION_COUNTED, m->counted);
    }
    if (restarts) {
        set_text_of(b, m->changed, JOB_ANNOTATION_RESTARTS, m->restarts);
    }
}

int control_count(const struct control_observed *o, struct control_counters *ret,
                  struct muster_err *err)
{
    struct build b = {0};
    struct control_counters m;
    read_annotations(&b, o->job, &m);
    bool counted = false;
    bool restarts = false;
    for (size_t i = 0; i < o->pod_count; i++) {
        counted |= count_pod(&b, &m, &o->pods[i]);
        if (remakes(o, &o->pods[i])) {
            restarts |= count_restart(&b, &m, &o->pods[i], o->view->now_unix_ms);
        }
    }
    forget_gone(o, &m);
    write_annotations(&b, &m, counted, restarts);
    if (b.failed) {
        control_counters_done(&m);
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a job's counters");
    }
    *ret = m;
    return 0;
}

void control_counters_done(struct control_counters *m)
{
    json_decref(m->changed);
    json_decref(m->counted);
    json_decref(m->restarts);
    json_decref(m->new_failures);
    *m = (struct control_counters){0};
}
