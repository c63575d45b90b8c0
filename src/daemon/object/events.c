/* See events.h. An event's name is made from what it says, so that finding the same one again is
 * one look-up. */
#include "daemon/object/events.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/time/timestamp.h"
#include "core/hash.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"

#include <stdio.h>
#include <string.h>

static uint64_t mix(uint64_t hash, const char *text)
{
    return hash_bytes(hash_text(hash, text), "\xff", 1); /* "ab","c" is not "a","bc" */
}

static char *name_of(const struct event_note *note)
{
    uint64_t hash = HASH_START;
    hash = mix(hash, doc_text(note->about, "metadata.uid", ""));
    hash = mix(hash, note->component);
    hash = mix(hash, note->warning ? "Warning" : "Normal");
    hash = mix(hash, note->reason);
    hash = mix(hash, note->message);
    char *name = NULL;
    return asprintf(&name, "%s.%016llx", doc_text(note->about, "metadata.name", "x"),
                    (unsigned long long)hash) < 0
               ? NULL
               : name;
}

static json_t *make(const struct event_note *note, const char *name, const char *stamp)
{
    const json_t *about = note->about;
    return json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s, s:s, s:s, s:s}, s:s, s:s, s:{s:s}, s:s, s:s, s:s, s:i}",
        "apiVersion", "v1", "kind", "Event", "metadata", "name", name, "namespace",
        doc_text(about, "metadata.namespace", "default"), "involvedObject", "apiVersion",
        doc_text(about, "apiVersion", "v1"), "kind", doc_text(about, "kind", ""), "name",
        doc_text(about, "metadata.name", ""), "namespace",
        doc_text(about, "metadata.namespace", "default"), "uid",
        doc_text(about, "metadata.uid", ""), "resourceVersion",
        doc_text(about, "metadata.resourceVersion", ""), "reason", note->reason, "message",
        note->message, "source", "component", note->component, "type",
        note->warning ? "Warning" : "Normal", "firstTimestamp", stamp, "lastTimestamp", stamp,
        "count", 1);
}

/* The job that the object is or belongs to, by uid: another one may have its name tomorrow. */
static const char *job_uid(const json_t *about)
{
    bool is_job = strcmp(doc_text(about, "kind", ""), "PyTorchJob") == 0;
    return doc_text(is_job ? doc_at(about, "metadata") : jobs_owner(about), "uid", NULL);
}

static int add_label(json_t *event, const json_t *about)
{
    const char *uid = job_uid(about);
    json_t *labels = uid ? json_pack("{s:s}", JOB_LABEL_EVENT, uid) : NULL;
    return !uid ? 0 : labels ? doc_set(event, "metadata.labels", labels) : MUSTER_ENOMEM;
}

static int count_again(struct store *store, const json_t *old, const char *stamp,
                       struct muster_err *err)
{
    muster_auto(doc) json_t *event = json_deep_copy(old);
    if (!event || doc_set_int(event, "count", doc_int(old, "count", 1) + 1) < 0 ||
        doc_set_text(event, "lastTimestamp", stamp) < 0) {
        return err_no_memory(err);
    }
    return store_update(store, "events", event, STORE_ALL, NULL, err);
}

int event_record(struct store *store, const struct event_note *note, struct muster_err *err)
{
    muster_auto(free) char *name = name_of(note);
    char stamp[TIMESTAMP_BYTES];
    timestamp_seconds(note->now_unix_ms, stamp);
    if (!name) {
        return err_no_memory(err);
    }
    const struct store_key key = {"events", doc_text(note->about, "metadata.namespace", "default"),
                                  name};
    muster_auto(doc) json_t *old = NULL;
    int r = store_get(store, key, &old, err);
    if (r != MUSTER_ENOENT) {
        return r < 0 ? r : count_again(store, old, stamp, err);
    }
    muster_auto(doc) json_t *event = make(note, name, stamp);
    if (!event || add_label(event, note->about) < 0) {
        return err_no_memory(err);
    }
    return store_create(store, "events", event, NULL, err);
}
