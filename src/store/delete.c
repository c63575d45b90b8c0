/* Deletes an object, at once or with grace, and handles the objects that it owns. See store.h.
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

enum { CASCADE_DEPTH_MAX = 16 };

/* Marks the row as deleted in grace_s seconds, and how its dependents are handled; a later request
 * can only shorten the time. */
static int mark_deleted(struct store *store, struct row *row, int64_t grace_s,
                        enum store_propagation how, struct muster_err *err)
{
    bool marked = doc_at(row->object, "metadata.deletionTimestamp");
    bool sooner =
        !marked || grace_s < doc_int(row->object, "metadata.deletionGracePeriodSeconds", 0);
    muster_auto(doc) json_t *object = json_deep_copy(row->object);
    if (!object || finalizers_set(object, how) < 0 ||
        (sooner && object_set_deadline(object, store_now_unix_ms(store), grace_s) < 0)) {
        return err_no_memory(err);
    }
    if (object_same(row->object, object)) {
        return 0;
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

static int disown(struct store *store, struct row *row, const char *uid, struct muster_err *err)
{
    muster_auto(doc) json_t *object = json_deep_copy(row->object);
    json_t *owners = doc_at(object, "metadata.ownerReferences");
    for (size_t i = json_array_size(owners); i-- > 0;) {
        if (strcmp(doc_text(json_array_get(owners, i), "uid", ""), uid) == 0) {
            json_array_remove(owners, i);
        }
    }
    if (json_array_size(owners) == 0) {
        json_object_del(json_object_get(object, "metadata"), "ownerReferences");
    }
    return object ? row_replace(store, row, object, err) : err_no_memory(err);
}

static int delete_row(struct store *store, struct row *row,
                      const struct store_delete_options *options, int depth,
                      struct muster_err *err);

static bool waits(const json_t *dependent, const char *owner_uid)
{
    (void)owner_uid;
    return finalizers_wait(dependent);
}

/* Changes the object so that no owner waits for its end any more. */
static int unblock_owners(struct store *store, struct row *row, struct muster_err *err)
{
    muster_auto(doc) json_t *object = json_deep_copy(row->object);
    size_t i;
    json_t *owner;
    json_array_foreach (doc_at(object, "metadata.ownerReferences"), i, owner) {
        (void)json_object_del(owner, "blockOwnerDeletion");
    }
    int r = object ? row_replace(store, row, object, err) : err_no_memory(err);
    if (r == 0) {
        json_decref(row->object);
        row->object = muster_take(object);
    }
    return r;
}

/* Chooses how a dependent is deleted. If it owns objects, it waits for them in turn, but not in a
 * circle. */
static int choose_propagation(struct store *store, struct row *row, enum store_propagation how,
                              enum store_propagation *ret, struct muster_err *err)
{
    const char *uid = doc_text(row->object, "metadata.uid", "");
    bool owns = false;
    bool circle = false;
    int r = how == STORE_FOREGROUND ? dependents_any(store, uid, NULL, &owns, err) : 0;
    r = r < 0 || !owns ? r : dependents_any(store, uid, waits, &circle, err);
    *ret = owns ? STORE_FOREGROUND : STORE_AS_FINALIZED;
    return r < 0 || !circle ? r : unblock_owners(store, row, err);
}

static int release_dependent(struct store *store, int64_t id, const char *uid,
                             enum store_propagation how, int depth, struct muster_err *err)
{
    muster_auto(row) struct row row = {0};
    int r = row_load_id(store, id, &row, err);
    if (r < 0) {
        return r == MUSTER_ENOENT ? 0 : r; /* deleted before, as another's dependent */
    }
    bool shared = false;
    r = dependents_shared(store, row.object, uid, &shared, err);
    if (r < 0) {
        return r;
    }
    if (shared || how == STORE_ORPHAN) {
        return disown(store, &row, uid, err);
    }
    struct store_delete_options options = {.grace_s = STORE_GRACE_DEFAULT};
    r = choose_propagation(store, &row, how, &options.propagation, err);
    return r < 0 ? r : delete_row(store, &row, &options, depth, err);
}

/* Deletes or disowns the objects that the owner owns. */
static int release_dependents(struct store *store, const json_t *owner, enum store_propagation how,
                              int depth, struct muster_err *err)
{
    assert(store->writing && depth <= CASCADE_DEPTH_MAX);
    muster_auto(free) int64_t *ids = NULL;
    size_t count = 0;
    const char *uid = doc_text(owner, "metadata.uid", "");
    int r = dependents_list(store, uid, &ids, &count, err);
    if (r == 0 && count > 0 && depth == CASCADE_DEPTH_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "ownerReferences go deeper than %d",
                           CASCADE_DEPTH_MAX);
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = release_dependent(store, ids[i], uid, how, depth + 1, err);
    }
    return r;
}

void delete_tell(const struct store *store, const struct row *row)
{
    if (store->on_delete) {
        store->on_delete(store->on_delete_arg, row->resource, row->object);
    }
}

int delete_remove(struct store *store, struct row *row, enum store_propagation how, int depth,
                  struct muster_err *err)
{
    int r = row_remove(store, row, err);
    return r < 0 ? r : release_dependents(store, row->object, how, depth, err);
}

/* Marks the object and releases its dependents; the object is removed when the write ends, if
 * nothing holds it. */
static int wait_for_dependents(struct store *store, struct row *row, int64_t grace_s, int depth,
                               struct muster_err *err)
{
    bool waited = finalizers_wait(row->object);
    if (!waited) {
        delete_tell(store, row);
    }
    int r = mark_deleted(store, row, grace_s, STORE_FOREGROUND, err);
    r = r < 0 || waited ? r : release_dependents(store, row->object, STORE_FOREGROUND, depth, err);
    const char *uid = doc_text(row->object, "metadata.uid", "");
    return r < 0 || json_object_set_new(store->left, uid, json_true()) == 0 ? r
                                                                            : err_no_memory(err);
}

static int delete_row(struct store *store, struct row *row,
                      const struct store_delete_options *options, int depth, struct muster_err *err)
{
    enum store_propagation how = finalizers_propagation(row->object, options->propagation);
    int64_t grace_s = grace_of(store, row, options->grace_s);
    if (how == STORE_FOREGROUND) {
        return wait_for_dependents(store, row, grace_s, depth, err);
    }
    if (grace_s == 0 && !finalizers_hold(row->object)) {
        if (!finalizers_wait(row->object)) {
            delete_tell(store, row);
        }
        return delete_remove(store, row, how, depth, err);
    }
    int r = mark_deleted(store, row, grace_s, how, err);
    return r < 0 || how != STORE_ORPHAN
               ? r
               : release_dependents(store, row->object, STORE_ORPHAN, depth, err);
}

/* Checks the uid and version in the words of an API server, which has other words for an update. */
static int check_preconditions(const json_t *stored, const struct store_delete_options *options,
                               struct muster_err *err)
{
    const struct {
        const char *what, *wanted, *path, *after;
    } checks[] = {
        {"UID", options->uid, "metadata.uid", "deleted and then recreated"},
        {"ResourceVersion", options->version, "metadata.resourceVersion", "modified"},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        const char *wanted = checks[i].wanted;
        const char *has = doc_text(stored, checks[i].path, "");
        if (wanted && *wanted && strcmp(wanted, has) != 0) {
            return muster_fail(err, MUSTER_ECONFLICT,
                               "the %s in the precondition (%.100s) does not match the %s in "
                               "record (%s). The object might have been %s",
                               checks[i].what, wanted, checks[i].what, has, checks[i].after);
        }
    }
    return 0;
}

static int delete_key(struct store *store, struct store_key key,
                      const struct store_delete_options *options, json_t **ret,
                      struct muster_err *err)
{
    muster_auto(row) struct row row = {0};
    int r = row_load(store, key, &row, err);
    r = r < 0 ? r : check_preconditions(row.object, options, err);
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
