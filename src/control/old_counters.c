/* See old_counters.h. */
#include "control/old_counters.h"

#include "base/doc.h"
#include "control/status/attempt.h"
#include "job/annotations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one key of JOB_ANNOTATION_COUNTED that is not a pod: it has the uid of the job that
 * counted. */
#define OWNER "job"

static const char *note_text(const struct job *job, const char *key)
{
    const json_t *notes = doc_at(job->object, "metadata.annotations");
    return json_string_value(json_object_get(notes, key));
}

/* Reads an annotation as an object; one that a user has damaged counts as empty. */
static json_t *note_object(struct build *b, const struct job *job, const char *key)
{
    const char *text = note_text(job, key);
    json_t *doc = NULL;
    int r = text ? doc_parse(text, strlen(text), &doc, NULL) : 0;
    if (r == MUSTER_ENOMEM || (doc && json_is_object(doc))) {
        b->failed |= r == MUSTER_ENOMEM;
        return doc;
    }
    json_decref(doc);
    return build_value(b, json_object());
}

static int64_t note_number(const struct job *job, const char *key, int64_t most)
{
    const char *text = note_text(job, key);
    int64_t value = text ? strtoll(text, NULL, 10) : 0;
    return 0 < value && value < most ? value : 0;
}

/* The uid comes from an annotation, too: it is always used as a key, never as a path. */
static int64_t failures_of(const json_t *counted, const char *uid)
{
    return (int64_t)json_integer_value(json_object_get(counted, uid));
}

/* Whether another job has written the counts. Annotations are copied when people export a job and
 * create it again: the other job's counts are ignored. */
static bool is_anothers(const struct job *job, const json_t *counted)
{
    const char *owner = doc_text(counted, OWNER, NULL);
    return owner && strcmp(owner, job->uid) != 0;
}

static void set_positive(struct build *b, json_t *to, const char *key, int64_t value)
{
    if (value > 0) {
        build_int(b, to, key, value);
    }
}

/* Takes {"worker-1": {"uid", "count", "at"}}: each entry was written when its pod was to be
 * replaced. */
static void take_restarts(struct build *b, json_t *replicas, json_t *restarts,
                          const json_t *counted)
{
    const char *slot;
    json_t *old;
    json_object_foreach (restarts, slot, old) {
        const char *uid = doc_text(old, "uid", "");
        json_t *entry = build_object_at(b, replicas, slot);
        build_text(b, entry, "uid", uid);
        set_positive(b, entry, "failures", failures_of(counted, uid));
        set_positive(b, entry, "remakes", doc_int(old, "count", 0));
        set_positive(b, entry, "at", doc_int(old, "at", 0));
        build_set(b, entry, "remade", json_true());
    }
}

/* Takes {"POD UID": failures}, for the pods that exist. */
static void take_counted(struct build *b, json_t *replicas, const json_t *counted,
                         const struct control_observed *o)
{
    for (size_t i = 0; i < o->pod_count; i++) {
        const struct control_member *pod = &o->pods[i];
        int64_t failures = pod->known ? failures_of(counted, pod->uid) : 0;
        if (failures <= 0) {
            continue;
        }
        char slot[32];
        snprintf(slot, sizeof slot, "%s-%d", job_role_lower(pod->role), pod->index);
        json_t *entry = build_object_at(b, replicas, slot);
        if (strcmp(doc_text(entry, "uid", ""), pod->uid) != 0) {
            build_text(b, entry, "uid", pod->uid);
            build_set(b, entry, "remade", json_false());
        }
        build_int(b, entry, "failures", failures);
    }
}

static void take_attempt(struct build *b, json_t *doc, const struct job *job)
{
    const struct control_attempt attempt = control_attempt_read(job);
    if (attempt.number > 0) {
        build_int(b, doc, "jobRestarts", attempt.number);
        build_text(b, doc, "firstRestart", attempt.first);
        build_text(b, doc, "lastRestart", attempt.last);
    }
}

json_t *control_old_counters(struct build *b, const struct control_observed *o)
{
    const struct job *job = o->job;
    json_t *counted = note_object(b, job, JOB_ANNOTATION_COUNTED);
    json_t *restarts = note_object(b, job, JOB_ANNOTATION_RESTARTS);
    json_t *doc = build_value(b, json_object());
    if (!is_anothers(job, counted)) {
        int64_t failures = note_number(job, JOB_ANNOTATION_FAILURES, INT32_MAX);
        set_positive(b, doc, "failures", failures);
        json_t *replicas = build_object_at(b, doc, "replicas");
        take_restarts(b, replicas, restarts, counted);
        take_counted(b, replicas, counted, o);
    }
    take_attempt(b, doc, job);
    set_positive(b, doc, "startTimeMs", note_number(job, JOB_ANNOTATION_STARTED, INT64_MAX));
    set_positive(b, doc, "completionTimeMs", note_number(job, JOB_ANNOTATION_ENDED, INT64_MAX));
    json_decref(counted);
    json_decref(restarts);
    return build_end(b, doc);
}
