/* What the files of src/store share; nobody else includes this.
 *
 * Layer: services. A "write" is one of create, update, delete: it runs between write_begin and
 * write_end, which make it atomic, inside a transaction of the caller's or as one of its own.
 */
#pragma once

#include "store/store.h"

#include <sqlite3.h>

enum statement {
#define X(name, text) SQL_##name,
#include "store/statements.def"
#undef X
    SQL_COUNT
};

/* State in memory that a rollback must restore, too. */
struct counters {
    int64_t version;
    int64_t floor; /* all changes after this version are kept */
    size_t objects;
    size_t events;
    size_t changes;
    size_t changes_bytes;
    size_t pending; /* number of changes that were not reported yet */
};

struct pending {
    enum store_change_kind kind;
    int64_t version;
    char *resource;
    json_t *object;
    json_t *before;
};

struct store {
    sqlite3 *db;
    char *path;
    sqlite3_stmt *statements[SQL_COUNT];
    struct store_options options;
    struct counters now;
    struct counters at_begin; /* counters at the begin of the transaction */
    struct counters at_write;
    bool in_transaction; /* between store_begin and its end */
    bool writing;        /* between write_begin and write_end */
    bool telling;
    bool wipe_due; /* the file may hold values of deleted secrets: see checkpoint_committed */
    int wal_frames;
    struct checkpoint *checkpoint; /* NULL: the store is in memory, or is being opened */
    struct pending *pending;
    size_t pending_room;
    struct store_watch *watches;
    store_delete_fn on_delete;
    void *on_delete_arg;
    json_t *left; /* of this write: uids of owners that lost a dependent that blocked deletion */
};

/* ---- database.c ---- */

int database_open(struct store *store, struct muster_err *err);
void database_close(struct store *store);

/* Turns SQLite's last error into one of ours, with the name of the file and what to do. */
int database_fail(const struct store *store, int rc, struct muster_err *err);
int database_fail_at(const char *path, sqlite3 *db, int rc, struct muster_err *err);

/* Binds by `types`: t text (NULL is SQL's NULL), i int64_t; then steps once. Returns 1 with a row,
 * 0 without, or an error. The statement stays open while it has rows: sql_end() or the next use of
 * the same statement ends it. */
int sql_step(struct store *store, enum statement id, struct muster_err *err, const char *types,
             ...);
int sql_next(struct store *store, enum statement id, struct muster_err *err);
void sql_end(struct store *store, enum statement id);
const char *sql_text(const struct store *store, enum statement id, int column);
int64_t sql_int(const struct store *store, enum statement id, int column);

/* For a statement without rows. */
#define sql_run(store, id, err, ...) sql_step(store, id, err, __VA_ARGS__)

/* ---- wal_vfs.c ---- */

/* Returns the name of the VFS, for sqlite3_open_v2. */
const char *wal_vfs(void);

/* ---- checkpoint.c ---- */

/* Call it when the store is open. Its thread's connection must be the last one: call stop, close
 * the other connection, call free. */
int checkpoint_start(struct store *store, struct muster_err *err);
void checkpoint_stop(struct store *store);
void checkpoint_free(struct store *store);

/* Called before and after a transaction. */
void checkpoint_begin(struct store *store);
void checkpoint_end(struct store *store);

/* Called before a transaction: waits for the thread if the WAL is at its limit. Fails if the WAL
 * stays there. */
int checkpoint_make_room(struct store *store, struct muster_err *err);

/* Called after a commit, within the transaction, with the number of frames in the WAL. With
 * wipe_due, the WAL is emptied soon: values of secrets that were deleted or overwritten are still
 * in it, and they are in the database until the frames are copied over its pages. Reports trouble
 * of the thread. */
void checkpoint_committed(struct store *store, int frames);

/* Whether the thread has nothing to do. */
bool checkpoint_rests(struct store *store);

/* ---- object.c: pure ---- */

struct store_key object_key(const char *resource, const json_t *object);

/* Returns a copy of the object in the form in which it is stored. */
int object_prepare(const struct store *store, const json_t *object, json_t **ret,
                   struct muster_err *err);
int object_merge(const json_t *before, const json_t *object, enum store_part part, json_t **ret,
                 struct muster_err *err);
int object_set_version(json_t *object, int64_t version);
int object_set_deadline(json_t *object, int64_t now_unix_ms, int64_t grace_s);
bool object_same(const json_t *a, const json_t *b);

/* Whether the object is a secret: its values are in the file only as long as it exists, and not in
 * the log of changes. */
bool object_is_secret(const char *resource);
/* Returns the object's text without its values, which the caller frees, or NULL when out of
 * memory. */
char *object_print_public(const json_t *object);

/* Returns false if no label or field selector can distinguish them. */
bool object_visibly_differs(const json_t *a, const json_t *b);
int64_t store_now_unix_ms(const struct store *store);

/* ---- row.c ---- */

/* A stored object. */
struct row {
    int64_t id;
    char *resource;
    char *text;
    json_t *object;
};

void row_done(struct row *row);
static inline void cleanup_row(struct row *row)
{
    row_done(row);
}

/* Parses an object's text as it is stored. The error MUSTER_EIO names an object whose text is not
 * JSON. */
int row_parse(const struct store *store, struct store_key key, const char *text, json_t **ret,
              struct muster_err *err);

/* Returns MUSTER_ENOENT if there is no such object. `ret` starts zeroed; call row_done also after a
 * failure. */
int row_load(struct store *store, struct store_key key, struct row *ret, struct muster_err *err);
int row_load_id(struct store *store, int64_t id, struct row *ret, struct muster_err *err);

/* Checks that it is the object and the version that the writer means. NULL or "" means any. */
int row_check(const json_t *stored, const char *uid, const char *version, struct muster_err *err);

int row_insert(struct store *store, const char *resource, json_t *object, struct muster_err *err);
/* Writes `object` over the row. */
int row_replace(struct store *store, struct row *row, json_t *object, struct muster_err *err);
/* Removes the row; row->object becomes the last state, with the version of the deletion. */
int row_remove(struct store *store, struct row *row, struct muster_err *err);

/* ---- finalizers.c: pure ---- */

/* Returns how an object is deleted when `wanted` is asked for. */
enum store_propagation finalizers_propagation(const json_t *object, enum store_propagation wanted);
/* Whether there are finalizers other than those of propagation. */
bool finalizers_hold(const json_t *object);
/* Keeps the finalizers of others, and adds foregroundDeletion for STORE_FOREGROUND. */
int finalizers_set(json_t *object, enum store_propagation how);
/* Whether the object is marked and waits until its dependents are deleted. */
bool finalizers_wait(const json_t *object);

/* ---- delete.c ---- */

/* Removes the row, and releases what it owns in the way `how`. */
int delete_remove(struct store *store, struct row *row, enum store_propagation how, int depth,
                  struct muster_err *err);
/* Calls the function of store_on_delete, because the row will be removed. */
void delete_tell(const struct store *store, const struct row *row);

/* ---- dependents.c ---- */

/* Lists the ids of the objects that a uid owns. */
int dependents_list(struct store *store, const char *uid, int64_t **ret, size_t *ret_count,
                    struct muster_err *err);

/* dependents_any: whether the uid has a dependent for which the test (NULL: any) is true. */
typedef bool (*dependent_test)(const json_t *dependent, const char *owner_uid);
int dependents_any(struct store *store, const char *uid, dependent_test test, bool *ret,
                   struct muster_err *err);

/* Whether there is another owner than `uid` that still exists and does not wait for its dependents'
 * end. */
int dependents_shared(struct store *store, const json_t *object, const char *uid, bool *ret,
                      struct muster_err *err);

/* Notes that the object lost its owners: each owner that waits is checked before the write ends. */
int dependents_left(struct store *store, const json_t *object, struct muster_err *err);
/* Removes the owners that waited for nothing else. */
int dependents_settle(struct store *store, struct muster_err *err);

/* ---- transaction.c: every write is between these two ---- */

int write_begin(struct store *store, struct muster_err *err);
/* Commits if r is 0, otherwise undoes the write; returns r, or why it could not commit. */
int write_end(struct store *store, int r, struct muster_err *err);

/* ---- watch.c ---- */

/* Logs the change (in the database) and queues it for the watchers. before_text is NULL if
 * selectors cannot see a difference. */
int change_add(struct store *store, enum store_change_kind kind, const char *resource,
               json_t *object, const char *text, json_t *before, const char *before_text,
               struct muster_err *err);
void change_drop(struct store *store, size_t keep);
void change_tell(struct store *store);
