/* The objects of the embedded cluster, in SQLite: what etcd and the registry are to Kubernetes.
 *
 * An object is a JSON tree, known by (resource, namespace, name), resource being its plural name
 * ("pods"). Every write gets the next resourceVersion, one sequence for all; the last changes are
 * kept for watchers that come late. Several writes between store_begin and store_commit happen
 * together or not at all. Watchers are told after the commit, in order, before the call returns.
 *
 * Durability: WAL, as with synchronous=NORMAL. What was acknowledged survives kill -9 at any
 * moment; a power cut may take the last commits with it, but then no process of theirs is left
 * either, and resourceVersions leap at the first start after a boot, so that none is given twice.
 * No call between open and close waits for the disk: a thread of the store's own moves the WAL into
 * the database, and syncs. Where it is behind by wal_pages_max, writes wait for it.
 *
 * Secrets: the values of an object of resource "secrets" lie in the file (its WAL included) only as
 * long as the object has them: soon after the call that deletes or changes it, the thread
 * overwrites them (where the disk refuses that, at a later write, the end or the next start). The
 * log of changes has none: a late watcher is told of a secret's last version, and of its end
 * without values.
 *
 * Layer: services. Thread: one, and the one that it makes for itself. Ownership: objects handed out
 * are new references to shared trees: read them, copy (json_deep_copy) before changing. After a
 * failed call nothing has changed; inside a transaction a failed call leaves the earlier ones to be
 * committed or rolled back.
 */
#pragma once

#include "store/selector.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;
struct store_watch;

struct store_options {
    size_t changes_max;      /* kept for replay; default 10,000 */
    size_t object_bytes_max; /* default 1.5 MiB, as etcd */
    size_t objects_max;      /* default 200,000 */
    size_t events_max;       /* resource "events": the oldest are deleted; default 5,000 */
    int wal_pages_max;       /* pages of 4 KiB, not counting the last transaction; default 16,384 */

    /* The wall clock; NULL: the system's. */
    int64_t (*now_unix_ms)(void *arg);
    void *now_arg;

    /* How long a deleted object stays, marked by deletionTimestamp, until it is deleted again with
     * grace 0 (a running pod); 0 removes it at once. NULL: always 0. */
    int64_t (*grace_s)(const char *resource, const json_t *object);

    /* Fills in what an API server would fill in (a pod's status.phase …) before an object is
     * stored. Returns 0 or MUSTER_ENOMEM. NULL: nothing. */
    int (*fill)(const char *resource, json_t *object);

    /* Called at the next commit when data cannot be moved from the WAL into the database; called
     * once until it succeeds. Data that was acknowledged is in the WAL. NULL: nobody is told until
     * the WAL is at its limit; then writes fail with this error. */
    void (*on_trouble)(const struct muster_err *trouble);
};

struct store_key {
    const char *resource;
    const char *namespace; /* "" for an object without a namespace */
    const char *name;
};

/* Makes the file if it is missing; ":memory:" is a store without a file. MUSTER_ECREATE: the file
 * cannot be made or written (or the disk is full); MUSTER_EDATA: it is not a database, is damaged,
 * or was made by a newer muster; the message says what to do. `options` may be NULL. */
int store_open(const char *path, const struct store_options *options, struct store **ret,
               struct muster_err *err);
struct store *store_close(struct store *store);

/* Returns the newest resourceVersion. */
int64_t store_version(const struct store *store);

/* ---- Reading ---- */

/* Returns a new reference in *ret, or MUSTER_ENOENT if there is no such object. */
int store_get(struct store *store, struct store_key key, json_t **ret, struct muster_err *err);

struct store_query {
    const char *resource;
    const char *namespace;         /* NULL: all */
    const struct selector *labels; /* NULL: any */
    const struct selector *fields; /* NULL: any */
    const char *owner_uid;         /* NULL: any; otherwise only those with this ownerReference */
    int64_t limit;                 /* 0: all */
    const char *next;              /* NULL, or `next` of the page before */
};

struct store_page {
    json_t *items;   /* array, sorted by namespace and name */
    int64_t version; /* a watch from here misses nothing, also if pages were read in between */
    char *next;      /* NULL on the last page */
};

/* Returns MUSTER_EGONE if `next` is older than the kept changes, MUSTER_EINVAL if it is not
 * ours. */
int store_list(struct store *store, const struct store_query *query, struct store_page *ret,
               struct muster_err *err);
void store_page_done(struct store_page *page);

/* ---- Writing. `ret` may be NULL; otherwise it is a new reference to the stored object. ---- */

/* Creates an object whose namespace and name are in its metadata (generateName works, too). Sets
 * uid, resourceVersion, creationTimestamp, generation. MUSTER_EEXIST, MUSTER_ETOOBIG,
 * MUSTER_ECREATE. */
int store_create(struct store *store, const char *resource, const json_t *object, json_t **ret,
                 struct muster_err *err);

enum store_part {
    STORE_ALL,         /* metadata, spec, status */
    STORE_BUT_STATUS,  /* status is unchanged */
    STORE_STATUS_ONLY, /* only status is changed */
};

/* A resourceVersion in the object must be the stored one (MUSTER_ECONFLICT), and so must a uid. A
 * write that changes nothing does not make a new version. */
int store_update(struct store *store, const char *resource, const json_t *object,
                 enum store_part part, json_t **ret, struct muster_err *err);

/* What happens to the objects that have an owner reference to the deleted object, and when the
 * deleted object itself is removed. A dependent that also has another owner only loses the
 * reference. In each case, a finalizer of others holds the object. */
enum store_propagation {
    STORE_AS_FINALIZED, /* as the finalizers orphan and foregroundDeletion say; without them: */
    STORE_BACKGROUND,   /* it is removed, and they are deleted, each with its own grace */
    /* They are deleted, and the object stays, marked by deletionTimestamp and the finalizer
     * foregroundDeletion, until those that have blockOwnerDeletion are removed. */
    STORE_FOREGROUND,
    STORE_ORPHAN, /* they stay, without the reference */
};

struct store_delete_options {
    const char *uid;     /* NULL, or must be the stored one (MUSTER_ECONFLICT) */
    const char *version; /* the same for the resourceVersion */
    int64_t grace_s;     /* STORE_GRACE_DEFAULT: as options.grace_s says; 0: at once */
    enum store_propagation propagation;
};

enum { STORE_GRACE_DEFAULT = -1 };

/* `options` may be NULL. *ret is the last state of the object; it has a deletionTimestamp if
 * something holds it, or held it when it was marked. */
int store_delete(struct store *store, struct store_key key,
                 const struct store_delete_options *options, json_t **ret, struct muster_err *err);

/* Called for each object within the transaction that removes it, before the object and its
 * dependents are removed (with STORE_FOREGROUND, when the object is marked). It can save what must
 * be kept of the object, also if this process is killed right afterwards. The deletion may still be
 * undone. The function may read the store, but not write. There is only one function; NULL:
 * none. */
typedef void (*store_delete_fn)(void *arg, const char *resource, const json_t *object);
void store_on_delete(struct store *store, store_delete_fn fn, void *arg);

/* ---- Transactions ---- */

/* Begins a transaction; transactions are not nested. A write outside of a transaction is a
 * transaction by itself. */
int store_begin(struct store *store, struct muster_err *err);
/* If it fails, everything since store_begin is undone. */
int store_commit(struct store *store, struct muster_err *err);
void store_rollback(struct store *store);

/* ---- Watching ---- */

enum store_change_kind { STORE_ADDED, STORE_MODIFIED, STORE_DELETED };

struct store_change {
    enum store_change_kind kind;
    int64_t version;
    struct store_key key;
    json_t *object; /* borrowed; for STORE_DELETED the last state, with the deletion's version */
    /* Borrowed; the state before, as far as selectors can see it; NULL for STORE_ADDED. */
    json_t *before;
};

struct store_watch_options {
    const char *resource;  /* NULL: all */
    const char *namespace; /* NULL: all */
    int64_t after_version; /* changes after this version are replayed; STORE_FROM_NOW: none */
};

enum { STORE_FROM_NOW = -1 };

/* Must not write to the store; may call store_unwatch for its own or another watch. */
typedef void (*store_watch_fn)(void *arg, const struct store_change *change);

/* Returns MUSTER_EGONE if a watch cannot continue from this version: it is older than the kept
 * changes, or of another store (in the future). The watcher must then list again. */
int store_check_version(const struct store *store, int64_t after_version, struct muster_err *err);

/* Replays the changes before it returns. MUSTER_EGONE as above. */
int store_watch(struct store *store, const struct store_watch_options *options, store_watch_fn fn,
                void *arg, struct store_watch **ret, struct muster_err *err);
void store_unwatch(struct store_watch *watch);
