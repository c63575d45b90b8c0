/* One stored object and its indexes: loads, inserts, replaces and removes it, and logs the change.
 *
 * Layer: services. Thread: one. Every function here runs inside write_begin and write_end.
 */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "store/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void row_done(struct row *row)
{
    free(row->resource);
    free(row->text);
    json_decref(row->object);
}

int row_parse(const struct store *store, struct store_key key, const char *text, json_t **ret,
              struct muster_err *err)
{
    struct muster_err why = MUSTER_ERR_INIT;
    json_t *object = text ? json_loads(text, 0, NULL) : NULL;
    if (object) {
        *ret = object;
        return 0;
    }
    int r = text ? doc_parse(text, strlen(text), &object, &why) : MUSTER_ENOMEM;
    json_decref(object);
    return r != MUSTER_EDATA
               ? err_no_memory(err)
               : muster_fail(err, MUSTER_EIO,
                             "the store %s is damaged: %s \"%s\" in it cannot be read (%.200s)",
                             store->path, key.resource, key.name, why.text);
}

static int fill_row(struct store *store, enum statement id, struct store_key key, struct row *ret,
                    struct muster_err *err)
{
    const char *text = sql_text(store, id, 1);
    ret->id = sql_int(store, id, 0);
    ret->resource = strdup(key.resource);
    ret->text = text ? strdup(text) : NULL;
    int r = ret->resource && ret->text ? 0 : err_no_memory(err);
    r = r < 0 ? r : row_parse(store, key, ret->text, &ret->object, err);
    sql_end(store, id); /* the key may point into the statement's columns */
    return r;
}

int row_load(struct store *store, struct store_key key, struct row *ret, struct muster_err *err)
{
    assert(key.resource && key.namespace && key.name && !ret->object);
    int r = sql_step(store, SQL_OBJECT_GET, err, "ttt", key.resource, key.namespace, key.name);
    if (r == 0) {
        return muster_fail(err, MUSTER_ENOENT, "%s \"%s\" not found", key.resource, key.name);
    }
    return r < 0 ? r : fill_row(store, SQL_OBJECT_GET, key, ret, err);
}

int row_load_id(struct store *store, int64_t id, struct row *ret, struct muster_err *err)
{
    int r = sql_step(store, SQL_OBJECT_BY_ID, err, "i", id);
    if (r <= 0) {
        return r < 0 ? r : muster_fail(err, MUSTER_ENOENT, "the object is gone");
    }
    const struct store_key key = {sql_text(store, SQL_OBJECT_BY_ID, 3),
                                  sql_text(store, SQL_OBJECT_BY_ID, 4),
                                  sql_text(store, SQL_OBJECT_BY_ID, 5)};
    return key.resource && key.namespace && key.name
               ? fill_row(store, SQL_OBJECT_BY_ID, key, ret, err)
               : err_no_memory(err);
}

int row_check(const json_t *stored, const char *uid, const char *version, struct muster_err *err)
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
    if (!same_at(before, object, "metadata.labels")) {
        r = sql_run(store, SQL_LABEL_REMOVE, err, "i", id);
        r = r < 0 ? r : index_labels(store, id, object, err);
    }
    if (r == 0 && !same_at(before, object, "metadata.ownerReferences")) {
        r = dependents_left(store, before, err);
        r = r < 0 ? r : sql_run(store, SQL_OWNER_REMOVE, err, "i", id);
        r = r < 0 ? r : index_owners(store, id, object, err);
    }
    return r;
}

/* ---- writing ---- */

/* Gives the object the next version and prints it. */
static int row_print(struct store *store, json_t *object, char **ret, struct muster_err *err)
{
    assert(store->writing);
    if (object_set_version(object, store->now.version + 1) < 0) {
        return err_no_memory(err);
    }
    muster_auto(free) char *text = doc_print(object);
    if (!text) {
        return err_no_memory(err);
    }
    if (strlen(text) > store->options.object_bytes_max) {
        return muster_fail(err, MUSTER_ETOOBIG, "the object has %zu bytes, over the limit of %zu",
                           strlen(text), store->options.object_bytes_max);
    }
    store->now.version++;
    *ret = muster_take(text);
    return 0;
}

int row_insert(struct store *store, const char *resource, json_t *object, struct muster_err *err)
{
    muster_auto(free) char *text = NULL;
    struct store_key key = object_key(resource, object);
    int r = row_print(store, object, &text, err);
    r = r < 0 ? r
              : sql_run(store, SQL_OBJECT_ADD, err, "ttttit", resource, key.namespace, key.name,
                        doc_text(object, "metadata.uid", ""), store->now.version, text);
    if (r < 0) {
        return r;
    }
    int64_t id = sqlite3_last_insert_rowid(store->db);
    r = index_labels(store, id, object, err);
    r = r < 0 ? r : index_owners(store, id, object, err);
    if (r < 0) {
        return r;
    }
    store->now.objects++;
    store->now.events += strcmp(resource, "events") == 0;
    return change_add(store, STORE_ADDED, resource, object, text, NULL, NULL, err);
}

int row_replace(struct store *store, struct row *row, json_t *object, struct muster_err *err)
{
    muster_auto(free) char *text = NULL;
    int r = row_print(store, object, &text, err);
    r = r < 0 ? r
              : sql_run(store, SQL_OBJECT_CHANGE, err, "iti", store->now.version, text, row->id);
    if (r < 0) {
        return r;
    }
    r = reindex(store, row->id, row->object, object, err);
    if (r < 0) {
        return r;
    }
    const char *before_text = object_visibly_differs(row->object, object) ? row->text : NULL;
    return change_add(store, STORE_MODIFIED, row->resource, object, text, row->object, before_text,
                      err);
}

int row_remove(struct store *store, struct row *row, struct muster_err *err)
{
    muster_auto(free) char *text = NULL;
    muster_auto(doc) json_t *last = json_deep_copy(row->object);
    int r = last ? row_print(store, last, &text, err) : err_no_memory(err);
    r = r < 0 ? r : dependents_left(store, row->object, err);
    r = r < 0 ? r : sql_run(store, SQL_LABEL_REMOVE, err, "i", row->id);
    r = r < 0 ? r : sql_run(store, SQL_OWNER_REMOVE, err, "i", row->id);
    r = r < 0 ? r : sql_run(store, SQL_OBJECT_REMOVE, err, "i", row->id);
    if (r < 0) {
        return r;
    }
    assert(store->now.objects > 0);
    store->now.objects--;
    store->now.events -= strcmp(row->resource, "events") == 0;
    r = change_add(store, STORE_DELETED, row->resource, last, text, row->object, NULL, err);
    if (r == 0) {
        json_decref(row->object);
        row->object = muster_take(last);
    }
    return r;
}
