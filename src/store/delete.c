/* Delete: now or with grace, and what becomes of the objects that the deleted one owns. See
 * store.h.
 *
 * Layer: services. Thread: one.
 */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "store/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { OWNED_MAX = 10000, CASCADE_DEPTH_MAX = 16 };

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
        return err_no_memory(err);
    }
    int r = row_replace(store, row, object, err);
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
        return err_no_memory(err);
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
    return object ? row_replace(store, row, object, err) : err_no_memory(err);
}

static int delete_row(struct store *store, struct row *row,
                      const struct store_delete_options *options, int depth,
                      struct muster_err *err);

static int release_dependent(struct store *store, int64_t id, const char *uid,
                             enum store_dependents dependents, int depth, struct muster_err *err)
{
    muster_auto(row) struct row row = {0};
    int r = row_load_id(store, id, &row, err);
    if (r < 0) {
        return r == MUSTER_ENOENT ? 0 : r; /* deleted on the way, as another's dependent */
    }
    bool shared = false;
    r = other_owner_lives(store, row.object, uid, &shared, err);
    if (r < 0) {
        return r;
    }
    if (shared || dependents == STORE_ORPHAN) {
        return disown(store, &row, uid, err);
    }
    static const struct store_delete_options by_default = {.grace_s = STORE_GRACE_DEFAULT};
    return delete_row(store, &row, &by_default, depth, err);
}

int delete_dependents(struct store *store, const json_t *owner, enum store_dependents dependents,
                      int depth, struct muster_err *err)
{
    assert(store->writing && depth <= CASCADE_DEPTH_MAX);
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
    if (store->on_delete) {
        store->on_delete(store->on_delete_arg, row->resource, row->object);
    }
    int r = row_remove(store, row, err);
    return r < 0 ? r : delete_dependents(store, row->object, options->dependents, depth, err);
}

static int delete_key(struct store *store, struct store_key key,
                      const struct store_delete_options *options, json_t **ret,
                      struct muster_err *err)
{
    muster_auto(row) struct row row = {0};
    int r = row_load(store, key, &row, err);
    r = r < 0 ? r : row_check(row.object, options->uid, options->version, err);
    if (r < 0) {
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

void store_on_delete(struct store *store, store_delete_fn fn, void *arg)
{
    store->on_delete = fn;
    store->on_delete_arg = arg;
}
