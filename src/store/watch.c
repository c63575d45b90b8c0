/* The change log and its watchers. A change is logged with the write, and told to watchers after
 * the commit.
 *
 * Layer: services. Ownership: a watch belongs to its subscriber until store_unwatch; one that is
 * dropped while changes are told is freed when the telling ends.
 */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "store/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING_MAX = 100000 };

static const size_t changes_bytes_max = (size_t)64 << 20;

struct store_watch {
    struct store *store;
    struct store_watch *next;
    char *resource;
    char *namespace;
    int64_t seen; /* version up to which changes were reported */
    bool dropped;
    store_watch_fn fn;
    void *arg;
};

/* ---- writing the log ---- */

static int queue(struct store *store, const struct pending *change, struct muster_err *err)
{
    size_t count = store->now.pending;
    if (count == store->pending_room) {
        size_t room = count ? count * 2 : 16;
        struct pending *larger =
            count < PENDING_MAX ? realloc(store->pending, room * sizeof *larger) : NULL;
        if (!larger) {
            return muster_fail(err, MUSTER_ENOMEM, "too many changes in one transaction");
        }
        store->pending = larger;
        store->pending_room = room;
    }
    char *resource = strdup(change->resource);
    if (!resource) {
        return err_no_memory(err);
    }
    store->pending[count] = *change;
    store->pending[count].resource = resource;
    json_incref(change->object);
    json_incref(change->before);
    store->now.pending++;
    return 0;
}

static int prune(struct store *store, struct muster_err *err)
{
    while (store->now.changes > store->options.changes_max ||
           (store->now.changes_bytes > changes_bytes_max && store->now.changes > 1)) {
        int r = sql_step(store, SQL_CHANGE_PRUNE, err, "");
        if (r <= 0) {
            return r;
        }
        store->now.floor = sql_int(store, SQL_CHANGE_PRUNE, 0);
        store->now.changes_bytes -= (size_t)sql_int(store, SQL_CHANGE_PRUNE, 1);
        store->now.changes--;
        sql_end(store, SQL_CHANGE_PRUNE);
        assert(store->now.floor <= store->now.version);
    }
    return 0;
}

static int add_change(struct store *store, enum store_change_kind kind, const char *resource,
                      json_t *object, const char *text, json_t *before, const char *before_text,
                      struct muster_err *err)
{
    struct store_key key = object_key(resource, object);
    int r = sql_run(store, SQL_CHANGE_ADD, err, "iittttt", store->now.version, (int64_t)kind,
                    resource, key.namespace, key.name, text, before_text);
    if (r < 0) {
        return r;
    }
    store->now.changes++;
    store->now.changes_bytes += strlen(text) + (before_text ? strlen(before_text) : 0);
    struct pending change = {kind, store->now.version, (char *)resource, object, before};
    r = queue(store, &change, err);
    return r < 0 ? r : prune(store, err);
}

int change_add(struct store *store, enum store_change_kind kind, const char *resource,
               json_t *object, const char *text, json_t *before, const char *before_text,
               struct muster_err *err)
{
    assert(store->writing && (kind == STORE_ADDED) == !before);
    if (!object_is_secret(resource)) {
        return add_change(store, kind, resource, object, text, before, before_text, err);
    }
    muster_auto(free) char *public_text = object_print_public(object);
    muster_auto(free) char *public_before = before_text ? object_print_public(before) : NULL;
    if (!public_text || (before_text && !public_before)) {
        return err_no_memory(err);
    }
    store->wipe_due |= kind != STORE_ADDED;
    return add_change(store, kind, resource, object, public_text, before, public_before, err);
}

void change_drop(struct store *store, size_t keep)
{
    while (store->now.pending > keep) {
        struct pending *last = &store->pending[--store->now.pending];
        free(last->resource);
        json_decref(last->object);
        json_decref(last->before);
    }
}

/* ---- reporting to the watchers ---- */

static bool wants(const struct store_watch *watch, const struct store_change *change)
{
    return !watch->dropped && change->version > watch->seen &&
           (!watch->resource || strcmp(watch->resource, change->key.resource) == 0) &&
           (!watch->namespace || strcmp(watch->namespace, change->key.namespace) == 0);
}

static void free_watch(struct store_watch *watch)
{
    free(watch->resource);
    free(watch->namespace);
    free(watch);
}

static void sweep(struct store *store)
{
    for (struct store_watch **at = &store->watches; *at;) {
        struct store_watch *watch = *at;
        if (watch->dropped) {
            *at = watch->next;
            free_watch(watch);
        } else {
            at = &watch->next;
        }
    }
}

void change_tell(struct store *store)
{
    assert(!store->writing && !store->telling);
    store->telling = true;
    for (size_t i = 0; i < store->now.pending; i++) {
        struct pending *p = &store->pending[i];
        assert((i == 0 || p->version > p[-1].version) && p->version <= store->now.version);
        struct store_change change = {p->kind, p->version, object_key(p->resource, p->object),
                                      p->object, p->before};
        for (struct store_watch *watch = store->watches; watch; watch = watch->next) {
            if (wants(watch, &change)) {
                watch->seen = change.version;
                watch->fn(watch->arg, &change);
            }
        }
    }
    store->telling = false;
    change_drop(store, 0);
    sweep(store);
}

/* ---- subscribing ---- */

/* Reads the object itself, because the log does not have the values of secrets. *ret stays NULL for
 * a version that is not the object's last: the log then has a later change. */
static int fetch_version(struct store *store, const struct store_change *change, json_t **ret,
                         struct muster_err *err)
{
    muster_auto(doc) json_t *current = NULL;
    int r = store_get(store, change->key, &current, err);
    if (r < 0) {
        return r == MUSTER_ENOENT ? 0 : r;
    }
    int64_t version = strtoll(doc_text(current, "metadata.resourceVersion", ""), NULL, 10);
    *ret = version == change->version ? muster_take(current) : NULL;
    return 0;
}

static int replay_one(struct store_watch *watch, sqlite3_stmt *row, struct muster_err *err)
{
    muster_auto(doc) json_t *object = NULL;
    muster_auto(doc) json_t *before = NULL;
    const char *before_text = (const char *)sqlite3_column_text(row, 6);
    const char *resource = (const char *)sqlite3_column_text(row, 2);
    const struct store_key key = {resource, "", (const char *)sqlite3_column_text(row, 4)};
    int r = row_parse(watch->store, key, (const char *)sqlite3_column_text(row, 5), &object, err);
    if (r == 0 && before_text) {
        r = row_parse(watch->store, key, before_text, &before, err);
    }
    if (r < 0) {
        return r;
    }
    enum store_change_kind kind = (enum store_change_kind)sqlite3_column_int(row, 1);
    struct store_change change = {kind, sqlite3_column_int64(row, 0), object_key(resource, object),
                                  object, kind == STORE_ADDED ? NULL : (before ? before : object)};
    bool whole = kind == STORE_DELETED || !object_is_secret(resource);
    muster_auto(doc) json_t *current = NULL;
    r = whole ? 0 : fetch_version(watch->store, &change, &current, err);
    if (r < 0 || (!whole && !current)) {
        return r;
    }
    change.object = whole ? object : current;
    watch->fn(watch->arg, &change);
    return 0;
}

/* Uses a separate statement, because a callback may start another watch. */
static int replay(struct store_watch *watch, int64_t after, struct muster_err *err)
{
    struct store *store = watch->store;
    sqlite3_stmt *rows = NULL;
    int rc = sqlite3_prepare_v2(store->db, sqlite3_sql(store->statements[SQL_CHANGE_LIST]), -1,
                                &rows, NULL);
    if (rc != SQLITE_OK) {
        return database_fail(store, rc, err);
    }
    sqlite3_bind_int64(rows, 1, after);
    sqlite3_bind_text(rows, 2, watch->resource, -1, SQLITE_STATIC);
    sqlite3_bind_text(rows, 3, watch->namespace, -1, SQLITE_STATIC);
    int r = 0;
    while (r == 0 && !watch->dropped && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        r = replay_one(watch, rows, err);
    }
    if (r == 0 && rc != SQLITE_DONE && rc != SQLITE_ROW) {
        r = database_fail(store, rc, err);
    }
    sqlite3_finalize(rows);
    return r;
}

int store_check_version(const struct store *store, int64_t after, struct muster_err *err)
{
    if (after > store->now.version) {
        return muster_fail(err, MUSTER_EGONE,
                           "resourceVersion %" PRId64 " is in the future; the newest is %" PRId64,
                           after, store->now.version);
    }
    if (after < store->now.floor) {
        return muster_fail(err, MUSTER_EGONE, "too old resource version: %" PRId64 " (%" PRId64 ")",
                           after, store->now.floor);
    }
    return 0;
}

static char *copy(const char *text, bool *failed)
{
    char *result = text ? strdup(text) : NULL;
    *failed = *failed || (text && !result);
    return result;
}

static struct store_watch *new_watch(struct store *store, const struct store_watch_options *options)
{
    struct store_watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        return NULL;
    }
    bool failed = false;
    watch->store = store;
    watch->seen = store->now.version;
    watch->resource = copy(options->resource, &failed);
    watch->namespace = copy(options->namespace, &failed);
    if (failed) {
        free_watch(watch);
        return NULL;
    }
    return watch;
}

int store_watch(struct store *store, const struct store_watch_options *options, store_watch_fn fn,
                void *arg, struct store_watch **ret, struct muster_err *err)
{
    assert(fn && !store->in_transaction && !store->writing);
    int64_t after =
        options->after_version == STORE_FROM_NOW ? store->now.version : options->after_version;
    int r = store_check_version(store, after, err);
    if (r < 0) {
        return r;
    }
    struct store_watch *watch = new_watch(store, options);
    if (!watch) {
        return err_no_memory(err);
    }
    watch->fn = fn;
    watch->arg = arg;
    watch->next = store->watches;
    store->watches = watch;
    bool outer = store->telling;
    store->telling = true;
    r = replay(watch, after, err);
    store->telling = outer;
    if (!outer) {
        sweep(store);
    }
    if (r < 0) {
        store_unwatch(watch);
        return r;
    }
    *ret = watch;
    return 0;
}

void store_unwatch(struct store_watch *watch)
{
    if (!watch) {
        return;
    }
    watch->dropped = true;
    if (!watch->store->telling) {
        sweep(watch->store);
    }
}
