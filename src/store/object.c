/* Fills in metadata, as a Kubernetes API server does: names, uid, times, generation.
 *
 * Layer: services, pure but for the clock and getrandom. Ownership: results are new references.
 */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/system/random.h"
#include "base/time/clock.h"
#include "base/time/timestamp.h"
#include "store/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { UID_BYTES = 37, SUFFIX_BYTES = 6, NAME_BYTES_MAX = 253 };

int64_t store_now_unix_ms(const struct store *store)
{
    if (store->options.now_unix_ms) {
        return store->options.now_unix_ms(store->options.now_arg);
    }
    return clock_unix_ms();
}

struct store_key object_key(const char *resource, const json_t *object)
{
    return (struct store_key){resource, doc_text(object, "metadata.namespace", ""),
                              doc_text(object, "metadata.name", "")};
}

/* Makes a UUID of version 4 (RFC 9562). */
static int make_uid(char ret[UID_BYTES], struct muster_err *err)
{
    unsigned char b[16];
    int r = random_bytes(b, sizeof b, err);
    if (r < 0) {
        return r;
    }
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(ret, UID_BYTES, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
    return 0;
}

/* Makes a name from generateName and five characters, as Kubernetes does; they cannot form a
 * word. */
static int make_name(json_t *metadata, struct muster_err *err)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    const char *stem = doc_text(metadata, "generateName", "");
    if (*stem == '\0' || strlen(stem) > NAME_BYTES_MAX - SUFFIX_BYTES) {
        return muster_fail(
            err, MUSTER_EINVAL,
            "metadata.name: name or generateName is required (%d characters at most)",
            NAME_BYTES_MAX);
    }
    unsigned char random[SUFFIX_BYTES - 1];
    int r = random_bytes(random, sizeof random, err);
    if (r < 0) {
        return r;
    }
    char name[NAME_BYTES_MAX + 1];
    int n = snprintf(name, sizeof name, "%s", stem);
    for (size_t i = 0; i < sizeof random; i++) {
        name[n++] = alphabet[random[i] % (sizeof alphabet - 1)];
    }
    name[n] = '\0';
    return doc_set_text(metadata, "name", name);
}

/* Removes empty maps and lists from metadata: an absent one is stored in the same way, so that
 * writing an empty one changes nothing. */
static void drop_empty(json_t *metadata)
{
    static const char *const fields[] = {"labels", "annotations", "finalizers", "ownerReferences",
                                         "managedFields"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const json_t *value = json_object_get(metadata, fields[i]);
        bool some = json_is_array(value)    ? json_array_size(value) > 0
                    : json_is_object(value) ? json_object_size(value) > 0
                                            : !json_is_null(value);
        if (value && !some) {
            json_object_del(metadata, fields[i]);
        }
    }
}

static int timestamp_new(const struct store *store, json_t *object, struct muster_err *err)
{
    json_t *metadata = json_object_get(object, "metadata");
    char uid[UID_BYTES];
    char now[TIMESTAMP_BYTES];
    int r = make_uid(uid, err);
    if (r < 0) {
        return r;
    }
    r = *doc_text(metadata, "name", "") ? 0 : make_name(metadata, err);
    if (r < 0) {
        return r == MUSTER_ENOMEM ? err_no_memory(err) : r;
    }
    timestamp_seconds(store_now_unix_ms(store), now);
    bool failed = doc_set_text(metadata, "uid", uid) < 0 ||
                  doc_set_text(metadata, "creationTimestamp", now) < 0 ||
                  (json_object_get(object, "spec") && doc_set_int(metadata, "generation", 1) < 0);
    json_object_del(metadata, "deletionTimestamp");
    json_object_del(metadata, "deletionGracePeriodSeconds");
    drop_empty(metadata);
    return failed ? err_no_memory(err) : 0;
}

int object_prepare(const struct store *store, const json_t *object, json_t **ret,
                   struct muster_err *err)
{
    muster_auto(doc) json_t *copy = json_deep_copy(object);
    if (!copy) {
        return err_no_memory(err);
    }
    if (!json_is_object(json_object_get(copy, "metadata"))) {
        return muster_fail(err, MUSTER_EINVAL, "metadata: required");
    }
    int r = timestamp_new(store, copy, err);
    if (r == 0) {
        *ret = muster_take(copy);
    }
    return r;
}

/* Takes the fields that the writer must not change from the stored object. */
static int keep_identity(const json_t *before, json_t *object)
{
    static const char *const fixed[] = {
        "name",           "namespace",         "uid",          "creationTimestamp",
        "generation",     "deletionTimestamp", "generateName", "deletionGracePeriodSeconds",
        "resourceVersion"};
    const json_t *from = json_object_get(before, "metadata");
    json_t *to = json_object_get(object, "metadata");
    if (!json_is_object(to)) {
        to = json_object();
        if (json_object_set_new(object, "metadata", to) != 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        json_t *value = json_object_get(from, fixed[i]);
        if (!value) {
            json_object_del(to, fixed[i]);
        } else if (json_object_set(to, fixed[i], value) != 0) {
            return -1;
        }
    }
    /* A write without managedFields (by a controller that builds the object again) does not change
     * owners. */
    json_t *managed = json_object_get(from, "managedFields");
    if (managed && !json_object_get(to, "managedFields") &&
        json_object_set(to, "managedFields", managed) != 0) {
        return -1;
    }
    drop_empty(to);
    return 0;
}

static int copy_member(json_t *to, const json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);
    if (!value) {
        json_object_del(to, key);
        return 0;
    }
    return json_object_set_new(to, key, json_deep_copy(value));
}

static bool same_member(const json_t *a, const json_t *b, const char *key)
{
    return object_same(json_object_get(a, key), json_object_get(b, key));
}

/* A status write takes only the status of the writer, and nothing of its metadata. */
static int assemble(const json_t *before, const json_t *object, enum store_part part, json_t *ret)
{
    if (part == STORE_STATUS_ONLY) {
        return copy_member(ret, object, "status");
    }
    if (keep_identity(before, ret) < 0 ||
        (part == STORE_BUT_STATUS && copy_member(ret, before, "status") < 0)) {
        return -1;
    }
    if (same_member(before, ret, "spec")) {
        return 0;
    }
    return doc_set_int(ret, "metadata.generation", doc_int(before, "metadata.generation", 0) + 1);
}

int object_merge(const json_t *before, const json_t *object, enum store_part part, json_t **ret,
                 struct muster_err *err)
{
    muster_auto(doc) json_t *merged = json_deep_copy(part == STORE_STATUS_ONLY ? before : object);
    if (!merged || assemble(before, object, part, merged) < 0) {
        return err_no_memory(err);
    }
    *ret = muster_take(merged);
    return 0;
}

int object_set_version(json_t *object, int64_t version)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, version);
    return doc_set_text(object, "metadata.resourceVersion", text);
}

int object_set_deadline(json_t *object, int64_t now_unix_ms, int64_t grace_s)
{
    char when[TIMESTAMP_BYTES];
    timestamp_seconds(now_unix_ms + grace_s * 1000, when);
    int r = doc_set_text(object, "metadata.deletionTimestamp", when);
    return r < 0 ? r : doc_set_int(object, "metadata.deletionGracePeriodSeconds", grace_s);
}

bool object_is_secret(const char *resource)
{
    return strcmp(resource, "secrets") == 0;
}

/* kubectl apply keeps the whole object in an annotation. */
static int drop_last_applied(json_t *object)
{
    muster_auto(doc) json_t *metadata = json_copy(doc_at(object, "metadata"));
    muster_auto(doc) json_t *annotations = json_copy(doc_at(metadata, "annotations"));
    if (!annotations) {
        return doc_at(object, "metadata.annotations") ? MUSTER_ENOMEM : 0;
    }
    (void)json_object_del(annotations, "kubectl.kubernetes.io/last-applied-configuration");
    return json_object_set(metadata, "annotations", annotations) == 0 &&
                   json_object_set(object, "metadata", metadata) == 0
               ? 0
               : MUSTER_ENOMEM;
}

char *object_print_public(const json_t *object)
{
    muster_auto(doc) json_t *copy = json_copy((json_t *)object);
    if (!copy || drop_last_applied(copy) < 0) {
        return NULL;
    }
    (void)json_object_del(copy, "data");
    (void)json_object_del(copy, "stringData");
    return doc_print(copy);
}

bool object_same(const json_t *a, const json_t *b)
{
    return a == b || (a && b && json_equal(a, b));
}

bool object_visibly_differs(const json_t *a, const json_t *b)
{
    static const char *const fields[] = {"status.phase", "spec.nodeName"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(doc_text(a, fields[i], ""), doc_text(b, fields[i], "")) != 0) {
            return true;
        }
    }
    return !object_same(doc_at(a, "metadata.labels"), doc_at(b, "metadata.labels"));
}
