/* See event.h. */
#include "controller/event.h"

#include "base/build.h"
#include "base/doc.h"
#include "base/time/timestamp.h"
#include "core/hash.h"
#include "job/annotations.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES_MAX = 253, HASH_BYTES = sizeof ".0123456789abcdef" - 1 };

static uint64_t mix(uint64_t hash, const char *text)
{
    return hash_bytes(hash_text(hash, text), "\xff", 1); /* so that "ab","c" and "a","bc" differ */
}

/* Returns how much of a name can stand before the dot: each part of a name ends with a letter or
 * digit. */
static int first_bytes(const char *name)
{
    size_t bytes = strnlen(name, NAME_BYTES_MAX - HASH_BYTES);
    while (bytes > 1 && (name[bytes - 1] == '-' || name[bytes - 1] == '.')) {
        bytes--;
    }
    return (int)bytes;
}

char *event_name(const struct event_note *note)
{
    uint64_t hash = HASH_START;
    hash = mix(hash, doc_text(note->about, "metadata.uid", ""));
    hash = mix(hash, note->component);
    hash = mix(hash, note->warning ? "Warning" : "Normal");
    hash = mix(hash, note->reason);
    hash = mix(hash, note->message);
    char *name = NULL;
    const char *of = doc_text(note->about, "metadata.name", "x");
    return asprintf(&name, "%.*s.%016llx", first_bytes(of), of, (unsigned long long)hash) < 0
               ? NULL
               : name;
}

/* Returns the uid of the job that the object is or belongs to: a later job may have the same
 * name. */
static const char *job_uid(const json_t *about)
{
    if (strcmp(doc_text(about, "kind", ""), "PyTorchJob") == 0) {
        return doc_text(about, "metadata.uid", NULL);
    }
    size_t index;
    json_t *owner;
    json_array_foreach (doc_at(about, "metadata.ownerReferences"), index, owner) {
        if (doc_bool(owner, "controller", false) &&
            strcmp(doc_text(owner, "kind", ""), "PyTorchJob") == 0) {
            return doc_text(owner, "uid", NULL);
        }
    }
    return NULL;
}

static void set_involved(struct build *b, json_t *involved, const json_t *about)
{
    build_text(b, involved, "apiVersion", doc_text(about, "apiVersion", "v1"));
    build_text(b, involved, "kind", doc_text(about, "kind", ""));
    build_text(b, involved, "name", doc_text(about, "metadata.name", ""));
    build_text(b, involved, "namespace", doc_text(about, "metadata.namespace", "default"));
    build_text(b, involved, "uid", doc_text(about, "metadata.uid", ""));
    build_text(b, involved, "resourceVersion", doc_text(about, "metadata.resourceVersion", ""));
}

json_t *event_make(const struct event_note *note, const char *name)
{
    struct build b = {0};
    char now[TIMESTAMP_BYTES];
    timestamp_seconds(note->now_unix_ms, now);
    json_t *event = build_value(&b, json_object());
    build_text(&b, event, "apiVersion", "v1");
    build_text(&b, event, "kind", "Event");
    json_t *metadata = build_object_at(&b, event, "metadata");
    build_text(&b, metadata, "name", name);
    build_text(&b, metadata, "namespace", doc_text(note->about, "metadata.namespace", "default"));
    set_involved(&b, build_object_at(&b, event, "involvedObject"), note->about);
    build_text(&b, event, "reason", note->reason);
    build_text(&b, event, "message", note->message);
    build_text(&b, build_object_at(&b, event, "source"), "component", note->component);
    build_text(&b, event, "type", note->warning ? "Warning" : "Normal");
    build_text(&b, event, "firstTimestamp", now);
    build_text(&b, event, "lastTimestamp", now);
    build_int(&b, event, "count", 1);
    if (job_uid(note->about)) {
        build_text(&b, build_object_at(&b, metadata, "labels"), JOB_LABEL_EVENT,
                   job_uid(note->about));
    }
    return build_end(&b, event);
}

json_t *event_count_again(const json_t *old, int64_t now_unix_ms)
{
    char now[TIMESTAMP_BYTES];
    return json_pack("{s:I, s:s}", "count", (json_int_t)(doc_int(old, "count", 1) + 1),
                     "lastTimestamp", timestamp_seconds(now_unix_ms, now));
}
