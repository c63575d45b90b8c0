/* Create, update, delete: the object, its indexes and its change, atomically. See store.h.
 *
 * Layer: services. Thread: one.
 */
#include "base/cleanup.h"
#include "base/doc.h"
#include "store/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OWNED_MAX = 10000, CASCADE_DEPTH_MAX = 16 };

/* A stored object. */
struct row {
    int64_t id;
    char *resource;
    char *text;
    json_t *object;
};

static void cleanup_row(struct row *row)
{
    free(row->resource);
    free(row->text);
    json_decref(row->object);
}

static int out_of_memory(struct muster_err *err)
{
    return muster_fail(err, MUSTER_ENOMEM, "out of memory");
}

static int fill_row(struct store *store, enum statement id, const char *resource, struct row *ret,
                    struct muster_err *err)
{
    const char *text = sql_text(store, id, 1);
    ret->id = sql_int(store, id, 0);
    ret->resource = strdup(resource);
    ret->text = text ? strdup(text) : NULL;
    ret->object = text ? json_loads(text, 0, NULL) : NULL;
    sql_end(store, id);
    return ret->resource && ret->text && ret->object ? 0 : out_of_memory(err);
}

static int load(struct store *store, struct store_key key, struct row *ret, struct muster_err *err)
{
    int r = sql_step(store, SQL_OBJECT_GET, err, "ttt", key.resource, key.namespace, key.name);
    if (r == 0) {
        return muster_fail(err, MUSTER_ENOENT, "%s \"%s\" not found", key.resource, key.name);
    }
    return r < 0 ? r : fill_row(store, SQL_OBJECT_GET, key.resource, ret, err);
}

/* ---- indexes ---- */

static int index_labels(struct store *store, int64_t id, const json_t *object,
                        struct muster_err *err)
{
    const char *key;
    json_t *value;
    json_object_foreach (doc_at(object, "metadata.labels"), key, value) {
        int r = !json_is_string(value)
                    ? 0
                    : sql_run(store, SQL_LABEL_ADD, err, "tti", key, json_string_value(value), id);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int index_owners(struct store *store, int64_t id, const json_t *object,
                        struct muster_err *err)
{
    size_t i;
    json_t *owner;
    json_array_foreach (doc_at(object, "metadata.ownerReferences"), i, owner) {
        int r = sql_run(store, SQL_OWNER_ADD, err, "ti", doc_text(owner, "uid", ""), id);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static bool same_at(const json_t *a, const json_t *b, const char *path)
{
    return object_same(doc_at(a, path), doc_at(b, path));
}

static int reindex(struct store *store, int64_t id, const json_t *before, const json_t *object,
                   struct muster_err *err)
{
    int r = 0;
    if (!same_at(before, object, "metadata.labels") &&
        (r = sql_run(store, SQL_LABEL_REMOVE, err, "i", id)) == 0) {
        r = index_labels(store, id, object, err);
    }
    if (r == 0 && !same_at(before, object, "metadata.ownerReferences") &&
        (r = sql_run(store, SQL_OWNER_REMOVE, err, "i", id)) == 0) {
        r = index_owners(store, id, object, err);
    }
    return r;
}

/* ---- create ---- */

/* Gives the object the next version and its text. */
static int finish_text(struct store *store, json_t *object, char **ret, struct muster_err *err)
{
    if (object_set_version(object, store->now.version + 1) < 0) {
        return out_of_memory(err);
    }
    muster_auto(free) char *text = doc_print(object);
    if (!text) {
        return out_of_memory(err);
    }
    if (strlen(text) > store->options.object_bytes_max) {
        return muster_fail(err, MUSTER_ETOOBIG, "the object has %zu bytes, over the limit of %zu",
                           strlen(text), store->options.object_bytes_max);
    }
    store->now.version++;
    *ret = muster_take(text);
    return 0;
}

static int remove_row(struct store *store, struct row *row, struct muster_err *err);
static int release_dependents(struct store *store, const json_t *owner,
                              enum store_dependents dependents, int depth, struct muster_err *err);

static int load_id(struct store *store, int64_t id, struct row *ret, struct muster_err *err)
{
    int r = sql_step(store, SQL_OBJECT_BY_ID, err, "i", id);
    if (r <= 0) {
        return r < 0 ? r : muster_fail(err, MUSTER_ENOENT, "the object is gone");
    }
    return fill_row(store, SQL_OBJECT_BY_ID, sql_text(store, SQL_OBJECT_BY_ID, 3), ret, err);
}

/* Events tell what happened lately: the oldest make room. */
static int bound_events(struct store *store, struct muster_err *err)
{
    while (store->now.events > store->options.events_max) {
        __attribute__((cleanup(cleanup_row))) struct row row = {0};
        int r = sql_step(store, SQL_EVENT_OLDEST, err, "");
        if (r <= 0) {
            return r;
        }
        int64_t id = sql_int(store, SQL_EVENT_OLDEST, 0);
        sql_end(store, SQL_EVENT_OLDEST);
        if ((r = load_id(store, id, &row, err)) < 0 || (r = remove_row(store, &row, err)) < 0) {
            return r;
        }
    }
    return 0;
}

static int refuse_second(struct store *store, struct store_key key, struct muster_err *err)
{
    int r = sql_step(store, SQL_OBJECT_GET, err, "ttt", key.resource, key.namespace, key.name);
    sql_end(store, SQL_OBJECT_GET);
    return r <= 0 ? r
                  : muster_fail(err, MUSTER_EEXIST, "%s \"%s\" already exists", key.resource,
                                key.name);
}

static int insert(struct store *store, const char *resource, json_t *object, struct muster_err *err)
{
    muster_auto(free) char *text = NULL;
    struct store_key key = object_key(resource, object);
    int r = refuse_second(store, key, err);
    if (r < 0 || (r = finish_text(store, object, &text, err)) < 0) {
        return r;
    }
    r = sql_run(store, SQL_OBJECT_ADD, err, "ttttit", resource, key.namespace, key.name,
                doc_text(object, "metadata.uid", ""), store->now.version, text);
    int64_t id = sqlite3_last_insert_rowid(store->db);
    if (r < 0 || (r = index_labels(store, id, object, err)) < 0 ||
        (r = index_owners(store, id, object, err)) < 0) {
        return r;
    }
    store->now.objects++;
    store->now.events += strcmp(resource, "events") == 0;
    r = change_add(store, STORE_ADDED, resource, object, text, NULL, NULL, err);
    return r < 0 ? r : bound_events(store, err);
}

static int fill(const struct store *store, const char *resource, json_t *object,
                struct muster_err *err)
{
    return store->options.fill && store->options.fill(resource, object) < 0 ? out_of_memory(err)
                                                                            : 0;
}

int store_create(struct store *store, const char *resource, const json_t *object, json_t **ret,
                 struct muster_err *err)
{
    muster_auto(doc) json_t *copy = NULL;
    if (store->now.objects >= store->options.objects_max) {
        return muster_fail(err, MUSTER_ETOOBIG,
                           "the store holds %zu objects, its limit: delete finished jobs",
                           store->now.objects);
    }
    int r = object_prepare(store, object, &copy, err);
    if (r < 0 || (r = fill(store, resource, copy, err)) < 0 || (r = write_begin(store, err)) < 0) {
        return r;
    }
    r = write_end(store, insert(store, resource, copy, err), err);
    if (r == 0 && ret) {
        *ret = muster_take(copy);
    }
    return r;
}

/* ---- update ---- */

static int check_expected(const json_t *stored, const char *uid, const char *version,
                          struct muster_err *err)
{
    const char *name = doc_text(stored, "metadata.name", "");
    const char *has = doc_text(stored, "metadata.uid", "");
    if (uid && *uid && strcmp(uid, has) != 0) {
        return muster_fail(err, MUSTER_ECONFLICT,
                           "\"%s\" is another object by now: its uid is %s, not %s", name, has,
                           uid);
    }
    has = doc_text(stored, "metadata.resourceVersion", "");
    if (version && *version && strcmp(version, has) != 0) {
        return muster_fail(
            err, MUSTER_ECONFLICT,
            "the object has been modified; please apply your changes to the latest version and try "
            "again");
    }
    return 0;
}

/* Writes `object` over the row. */
static int replace(struct store *store, struct row *row, json_t *object, struct muster_err *err)
{
    muster_auto(free) char *text = NULL;
    int r = finish_text(store, object, &text, err);
    if (r < 0 || (r = sql_run(store, SQL_OBJECT_CHANGE, err, "iti", store->now.version, text,
                              row->id)) < 0) {
        return r;
    }
    if ((r = reindex(store, row->id, row->object, object, err)) < 0) {
        return r;
    }
    const char *before_text = object_visibly_differs(row->object, object) ? row->text : NULL;
    return change_add(store, STORE_MODIFIED, row->resource, object, text, row->object, before_text,
                      err);
}

static bool finalized(const json_t *object)
{
    return doc_at(object, "metadata.deletionTimestamp") &&
           json_array_size(doc_at(object, "metadata.finalizers")) == 0 &&
           doc_int(object, "metadata.deletionGracePeriodSeconds", 0) == 0;
}

/* The last finalizer went from an object that waited for it. */
static int finalize(struct store *store, struct row *row, json_t *object, struct muster_err *err)
{
    json_decref(row->object);
    row->object = json_incref(object);
    int r = remove_row(store, row, err);
    return r < 0 ? r : release_dependents(store, row->object, STORE_CASCADE, 0, err);
}

static int update(struct store *store, const char *resource, const json_t *object,
                  enum store_part part, json_t **ret, struct muster_err *err)
{
    __attribute__((cleanup(cleanup_row))) struct row row = {0};
    muster_auto(doc) json_t *merged = NULL;
    int r = load(store, object_key(resource, object), &row, err);
    if (r < 0 ||
        (r = check_expected(row.object, doc_text(object, "metadata.uid", NULL),
                            doc_text(object, "metadata.resourceVersion", NULL), err)) < 0) {
        return r;
    }
    if ((r = object_merge(row.object, object, part, &merged, err)) < 0 ||
        (r = fill(store, resource, merged, err)) < 0) {
        return r;
    }
    if (object_same(row.object, merged)) {
        *ret = json_incref(row.object);
        return 0;
    }
    r = finalized(merged) ? finalize(store, &row, merged, err) : replace(store, &row, merged, err);
    if (r == 0) {
        *ret = muster_take(merged);
    }
    return r;
}

int store_update(struct store *store, const char *resource, const json_t *object,
                 enum store_part part, json_t **ret, struct muster_err *err)
{
    muster_auto(doc) json_t *result = NULL;
    int r = write_begin(store, err);
    if (r < 0) {
        return r;
    }
    r = write_end(store, update(store, resource, object, part, &result, err), err);
    if (r == 0 && ret) {
        *ret = muster_take(result);
    }
    return r;
}

/* ---- delete ---- */

/* Takes the row out; row->object becomes the last state, with the version of its end. */
static int remove_row(struct store *store, struct row *row, struct muster_err *err)
{
    muster_auto(free) char *text = NULL;
    muster_auto(doc) json_t *last = json_deep_copy(row->object);
    int r = last ? finish_text(store, last, &text, err) : out_of_memory(err);
    if (r < 0 || (r = sql_run(store, SQL_LABEL_REMOVE, err, "i", row->id)) < 0 ||
        (r = sql_run(store, SQL_OWNER_REMOVE, err, "i", row->id)) < 0 ||
        (r = sql_run(store, SQL_OBJECT_REMOVE, err, "i", row->id)) < 0) {
        return r;
    }
    store->now.objects--;
    store->now.events -= strcmp(row->resource, "events") == 0;
    r = change_add(store, STORE_DELETED, row->resource, last, text, row->object, NULL, err);
    if (r == 0) {
        json_decref(row->object);
        row->object = muster_take(last);
    }
    return r;
}

/* Marks the row deleted in grace_s seconds; a later wish may only shorten that. */
static int mark_deleted(struct store *store, struct row *row, int64_t grace_s,
                        struct muster_err *err)
{
    bool marked = doc_at(row->object, "metadata.deletionTimestamp");
    if (marked && grace_s >= doc_int(row->object, "metadata.deletionGracePeriodSeconds", 0)) {
        return 0;
    }
    muster_auto(doc) json_t *object = json_deep_copy(row->object);
    if (!object || object_set_deadline(object, store_now_unix_ms(store), grace_s) < 0) {
        return out_of_memory(err);
    }
    int r = replace(store, row, object, err);
    if (r == 0) {
        json_decref(row->object);
        row->object = muster_take(object);
    }
    return r;
}

static int64_t grace_of(const struct store *store, const struct row *row, int64_t wanted_s)
{
    int64_t own_s = store->options.grace_s ? store->options.grace_s(row->resource, row->object) : 0;
    return wanted_s == STORE_GRACE_DEFAULT || own_s == 0 ? own_s : wanted_s;
}

/* Ids of what a uid owns. */
static int list_owned(struct store *store, const char *uid, int64_t **ret, size_t *ret_count,
                      struct muster_err *err)
{
    muster_auto(free) int64_t *ids = calloc(OWNED_MAX, sizeof *ids);
    if (!ids) {
        return out_of_memory(err);
    }
    size_t count = 0;
    int r = sql_step(store, SQL_OWNED, err, "t", uid);
    for (; r == 1 && count < OWNED_MAX; r = sql_next(store, SQL_OWNED, err)) {
        ids[count++] = sql_int(store, SQL_OWNED, 0);
    }
    sql_end(store, SQL_OWNED);
    if (r != 0) {
        return r < 0 ? r : muster_fail(err, MUSTER_ETOOBIG, "it owns over %d objects", OWNED_MAX);
    }
    *ret = muster_take(ids);
    *ret_count = count;
    return 0;
}

/* Is there another owner than `uid` that still exists? */
static int other_owner_lives(struct store *store, const json_t *object, const char *uid, bool *ret,
                             struct muster_err *err)
{
    size_t i;
    json_t *owner;
    *ret = false;
    json_array_foreach (doc_at(object, "metadata.ownerReferences"), i, owner) {
        const char *other = doc_text(owner, "uid", "");
        int r = strcmp(other, uid) == 0 ? 0 : sql_step(store, SQL_UID_EXISTS, err, "t", other);
        if (r < 0) {
            return r;
        }
        sql_end(store, SQL_UID_EXISTS);
        *ret = *ret || r == 1;
    }
    return 0;
}

static int disown(struct store *store, struct row *row, const char *uid, struct muster_err *err)
{
    muster_auto(doc) json_t *object = json_deep_copy(row->object);
    json_t *owners = doc_at(object, "metadata.ownerReferences");
    for (size_t i = json_array_size(owners); i-- > 0;) {
        if (strcmp(doc_text(json_array_get(owners, i), "uid", ""), uid) == 0) {
            json_array_remove(owners, i);
        }
    }
    return object ? replace(store, row, object, err) : out_of_memory(err);
}

static int delete_row(struct store *store, struct row *row,
                      const struct store_delete_options *options, int depth,
                      struct muster_err *err);

static int release_dependent(struct store *store, int64_t id, const char *uid,
                             enum store_dependents dependents, int depth, struct muster_err *err)
{
    __attribute__((cleanup(cleanup_row))) struct row row = {0};
    int r = load_id(store, id, &row, err);
    if (r < 0) {
        return r == MUSTER_ENOENT ? 0 : r; /* deleted on the way, as another's dependent */
    }
    bool shared = false;
    if ((r = other_owner_lives(store, row.object, uid, &shared, err)) < 0) {
        return r;
    }
    if (shared || dependents == STORE_ORPHAN) {
        return disown(store, &row, uid, err);
    }
    static const struct store_delete_options by_default = {.grace_s = STORE_GRACE_DEFAULT};
    return delete_row(store, &row, &by_default, depth, err);
}

static int release_dependents(struct store *store, const json_t *owner,
                              enum store_dependents dependents, int depth, struct muster_err *err)
{
    muster_auto(free) int64_t *ids = NULL;
    size_t count = 0;
    const char *uid = doc_text(owner, "metadata.uid", "");
    int r = list_owned(store, uid, &ids, &count, err);
    if (r == 0 && count > 0 && depth == CASCADE_DEPTH_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "ownerReferences go deeper than %d",
                           CASCADE_DEPTH_MAX);
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = release_dependent(store, ids[i], uid, dependents, depth + 1, err);
    }
    return r;
}

static int delete_row(struct store *store, struct row *row,
                      const struct store_delete_options *options, int depth, struct muster_err *err)
{
    int64_t grace_s = grace_of(store, row, options->grace_s);
    bool held = json_array_size(doc_at(row->object, "metadata.finalizers")) > 0;
    if (grace_s > 0 || held) {
        return mark_deleted(store, row, grace_s, err);
    }
    int r = remove_row(store, row, err);
    return r < 0 ? r : release_dependents(store, row->object, options->dependents, depth, err);
}

static int delete_key(struct store *store, struct store_key key,
                      const struct store_delete_options *options, json_t **ret,
                      struct muster_err *err)
{
    __attribute__((cleanup(cleanup_row))) struct row row = {0};
    int r = load(store, key, &row, err);
    if (r < 0 || (r = check_expected(row.object, options->uid, options->version, err)) < 0) {
        return r;
    }
    r = delete_row(store, &row, options, 0, err);
    if (r == 0) {
        *ret = json_incref(row.object);
    }
    return r;
}

int store_delete(struct store *store, struct store_key key,
                 const struct store_delete_options *options, json_t **ret, struct muster_err *err)
{
    static const struct store_delete_options by_default = {.grace_s = STORE_GRACE_DEFAULT};
    muster_auto(doc) json_t *result = NULL;
    int r = write_begin(store, err);
    if (r < 0) {
        return r;
    }
    r = write_end(store, delete_key(store, key, options ? options : &by_default, &result, err),
                  err);
    if (r == 0 && ret) {
        *ret = muster_take(result);
    }
    return r;
}
