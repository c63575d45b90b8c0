/* Creates and updates objects, atomically. See store.h.
 *
 * Layer: services. Thread: one.
 */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "store/internal.h"

#include <string.h>

/* ---- create ---- */

/* Removes the oldest events: events only report what happened recently. */
static int bound_events(struct store *store, struct muster_err *err)
{
    while (store->now.events > store->options.events_max) {
        muster_auto(row) struct row row = {0};
        int r = sql_step(store, SQL_EVENT_OLDEST, err, "");
        if (r <= 0) {
            return r;
        }
        int64_t id = sql_int(store, SQL_EVENT_OLDEST, 0);
        sql_end(store, SQL_EVENT_OLDEST);
        r = row_load_id(store, id, &row, err);
        r = r < 0 ? r : row_remove(store, &row, err);
        if (r < 0) {
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
    int r = refuse_second(store, object_key(resource, object), err);
    r = r < 0 ? r : row_insert(store, resource, object, err);
    if (r < 0) {
        return r;
    }
    return bound_events(store, err);
}

static int fill(const struct store *store, const char *resource, json_t *object,
                struct muster_err *err)
{
    return store->options.fill && store->options.fill(resource, object) < 0 ? err_no_memory(err)
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
    r = r < 0 ? r : fill(store, resource, copy, err);
    r = r < 0 ? r : write_begin(store, err);
    if (r < 0) {
        return r;
    }
    r = write_end(store, insert(store, resource, copy, err), err);
    if (r == 0 && ret) {
        *ret = muster_take(copy);
    }
    return r;
}

/* ---- update ---- */

static bool finalized(const json_t *object)
{
    return doc_at(object, "metadata.deletionTimestamp") &&
           json_array_size(doc_at(object, "metadata.finalizers")) == 0 &&
           doc_int(object, "metadata.deletionGracePeriodSeconds", 0) == 0;
}

/* Removes an object that waited for its last finalizer. */
static int finalize(struct store *store, struct row *row, json_t *object, struct muster_err *err)
{
    if (!finalizers_wait(row->object)) {
        delete_tell(store, row);
    }
    json_decref(row->object);
    row->object = json_incref(object);
    return delete_remove(store, row, STORE_BACKGROUND, 0, err);
}

static int update(struct store *store, const char *resource, const json_t *object,
                  enum store_part part, json_t **ret, struct muster_err *err)
{
    muster_auto(row) struct row row = {0};
    muster_auto(doc) json_t *merged = NULL;
    int r = row_load(store, object_key(resource, object), &row, err);
    r = r < 0 ? r
              : row_check(row.object, doc_text(object, "metadata.uid", NULL),
                          doc_text(object, "metadata.resourceVersion", NULL), err);
    if (r < 0) {
        return r;
    }
    r = object_merge(row.object, object, part, &merged, err);
    r = r < 0 ? r : fill(store, resource, merged, err);
    if (r < 0) {
        return r;
    }
    if (object_same(row.object, merged)) {
        *ret = json_incref(row.object);
        return 0;
    }
    r = finalized(merged) ? finalize(store, &row, merged, err)
                          : row_replace(store, &row, merged, err);
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
