/* Finds what an object owns, by its uid, and the owners that wait until it is gone.
 *
 * A write may take many dependents of one owner. Each removal notes the owner, and the end of the
 * write looks once at each that was noted; what goes then may have owners that wait as well.
 *
 * Layer: services. Thread: one. Every function here runs inside write_begin and write_end.
 * Source: the rules of Kubernetes' garbage collector (kube-controller-manager).
 */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "store/internal.h"

#include <stdlib.h>
#include <string.h>

enum { OWNED_MAX = 10000 };

int dependents_list(struct store *store, const char *uid, int64_t **ret, size_t *ret_count,
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

static int test_id(struct store *store, int64_t id, const char *uid, dependent_test test, bool *ret,
                   struct muster_err *err)
{
    muster_auto(row) struct row row = {0};
    int r = row_load_id(store, id, &row, err);
    if (r == 0) {
        *ret = test(row.object, uid);
    }
    return r;
}

int dependents_any(struct store *store, const char *uid, dependent_test test, bool *ret,
                   struct muster_err *err)
{
    bool found = false;
    int r = sql_step(store, SQL_OWNED, err, "t", uid);
    while (r == 1 && !found) {
        found = !test;
        int tested =
            test ? test_id(store, sql_int(store, SQL_OWNED, 0), uid, test, &found, err) : 0;
        r = tested < 0 || found ? tested : sql_next(store, SQL_OWNED, err);
    }
    sql_end(store, SQL_OWNED);
    if (r == 0) {
        *ret = found;
    }
    return r;
}

/* Returns 1 and the row if `find` finds the uid. */
static int load_uid(struct store *store, enum statement find, const char *uid, struct row *row,
                    struct muster_err *err)
{
    int r = sql_step(store, find, err, "t", uid);
    if (r <= 0) {
        return r;
    }
    int64_t id = sql_int(store, find, 0);
    sql_end(store, find);
    r = row_load_id(store, id, row, err);
    return r < 0 ? r : 1;
}

int dependents_shared(struct store *store, const json_t *object, const char *uid, bool *ret,
                      struct muster_err *err)
{
    size_t i;
    json_t *owner;
    *ret = false;
    json_array_foreach (doc_at(object, "metadata.ownerReferences"), i, owner) {
        muster_auto(row) struct row row = {0};
        const char *other = doc_text(owner, "uid", "");
        int r = strcmp(other, uid) == 0 ? 0 : load_uid(store, SQL_OBJECT_BY_UID, other, &row, err);
        if (r < 0) {
            return r;
        }
        *ret = *ret || (r == 1 && !finalizers_wait(row.object));
    }
    return 0;
}

/* ---- owners that wait ---- */

int dependents_left(struct store *store, const json_t *object, struct muster_err *err)
{
    size_t i;
    json_t *owner;
    json_array_foreach (doc_at(object, "metadata.ownerReferences"), i, owner) {
        if (doc_bool(owner, "blockOwnerDeletion", false) &&
            json_object_set_new(store->left, doc_text(owner, "uid", ""), json_true()) != 0) {
            return err_no_memory(err);
        }
    }
    return 0;
}

static bool blocks(const json_t *dependent, const char *owner_uid)
{
    size_t i;
    json_t *owner;
    json_array_foreach (doc_at(dependent, "metadata.ownerReferences"), i, owner) {
        if (strcmp(doc_text(owner, "uid", ""), owner_uid) == 0 &&
            doc_bool(owner, "blockOwnerDeletion", false)) {
            return true;
        }
    }
    return false;
}

/* Ends the wait of an owner that no dependent holds any more. */
static int end_wait(struct store *store, struct row *row, struct muster_err *err)
{
    muster_auto(doc) json_t *object = json_deep_copy(row->object);
    if (!object || finalizers_set(object, STORE_BACKGROUND) < 0) {
        return err_no_memory(err);
    }
    if (finalizers_hold(object) || doc_int(object, "metadata.deletionGracePeriodSeconds", 0) > 0) {
        return row_replace(store, row, object, err);
    }
    json_decref(row->object);
    row->object = muster_take(object);
    return delete_remove(store, row, STORE_BACKGROUND, 0, err);
}

static int settle(struct store *store, const char *uid, struct muster_err *err)
{
    muster_auto(row) struct row row = {0};
    bool blocked = true;
    int r = load_uid(store, SQL_MAY_WAIT, uid, &row, err);
    if (r <= 0 || !finalizers_wait(row.object)) {
        return r < 0 ? r : 0;
    }
    r = dependents_any(store, uid, blocks, &blocked, err);
    return r < 0 || blocked ? r : end_wait(store, &row, err);
}

int dependents_settle(struct store *store, struct muster_err *err)
{
    void *first;
    while ((first = json_object_iter(store->left))) {
        muster_auto(free) char *uid = strdup(json_object_iter_key(first));
        if (!uid) {
            return err_no_memory(err);
        }
        (void)json_object_del(store->left, uid);
        int r = settle(store, uid, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}
