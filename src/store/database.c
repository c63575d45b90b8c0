/* The SQLite part of the store: file, schema, statements, and errors that say what to do.
 *
 * Layer: services. Thread: the store's.
 */
#include "store/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUSY_MS = 2000, TEXT_BYTES = 128 };

/* labels and owners are indexes of data in `object`. WITHOUT ROWID: these tables have no columns
 * beyond the key. */
static const char schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE objects(id INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL,"
    " name TEXT NOT NULL, uid TEXT NOT NULL, version INTEGER NOT NULL, object TEXT NOT NULL,"
    " UNIQUE(resource, namespace, name));"
    "CREATE INDEX objects_by_uid ON objects(uid);"
    "CREATE INDEX events_by_age ON objects(id) WHERE resource = 'events';"
    "CREATE TABLE labels(key TEXT NOT NULL, value TEXT NOT NULL, id INTEGER NOT NULL,"
    " PRIMARY KEY(key, value, id)) WITHOUT ROWID;"
    "CREATE INDEX labels_by_id ON labels(id);"
    "CREATE TABLE owners(owner TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY(owner, id))"
    " WITHOUT ROWID;"
    "CREATE INDEX owners_by_id ON owners(id);"
    "CREATE TABLE changes(version INTEGER PRIMARY KEY, kind INTEGER NOT NULL, resource TEXT NOT NULL,"
    " namespace TEXT NOT NULL, name TEXT NOT NULL, object TEXT NOT NULL, before TEXT);"
    "PRAGMA user_version = 3;";

/* Each text changes one layout into the next, so that a store of any earlier muster can be opened;
 * a text that was released never changes. */
static const struct migration {
    const char *text;
    bool alone; /* cannot be part of a transaction */
} migrations[] = {
    /* 1 to 2: removes the values of secrets from the log of changes. */
    {"UPDATE changes SET object = json_remove(object, '$.data', '$.stringData',"
     " '$.metadata.annotations.\"kubectl.kubernetes.io/last-applied-configuration\"'),"
     " before = json_remove(before, '$.data', '$.stringData',"
     " '$.metadata.annotations.\"kubectl.kubernetes.io/last-applied-configuration\"')"
     " WHERE resource = 'secrets'",
     false},
    /* 2 to 3: data that was deleted before layout 3 was not overwritten: VACUUM removes it with the
     * free pages. */
    {"VACUUM", true},
};

enum { LAYOUT = 1 + sizeof migrations / sizeof migrations[0] };
_Static_assert(LAYOUT == 3, "as the schema says");

/* This connection only adds to the WAL and syncs nothing. checkpoint.c syncs before it writes into
 * the database, and wal_vfs.c makes it safe that a WAL begins again without a sync. */
static const char settings[] = "PRAGMA synchronous = OFF;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA secure_delete = ON;"
                               "PRAGMA foreign_keys = OFF;";

static const char *const texts[] = {
#define X(name, text) [SQL_##name] = (text),
#include "store/statements.def"
#undef X
};

static bool disk_is_full(sqlite3 *db, int rc)
{
    return rc == SQLITE_FULL || (rc == SQLITE_IOERR && sqlite3_system_errno(db) == ENOSPC);
}

static int damaged(const char *path, const char *what, struct muster_err *err)
{
    return muster_fail(err, MUSTER_EDATA,
                       "the store %s is damaged (%s): move it away and start again; logs and "
                       "volumes lie beside it and are kept",
                       path, what);
}

int database_fail_at(const char *path, sqlite3 *db, int rc, struct muster_err *err)
{
    const char *what = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    rc &= 0xff;
    if (disk_is_full(db, rc)) {
        return muster_fail(err, MUSTER_ECREATE,
                           "cannot write %s: the disk is full; free some space and try again",
                           path);
    }
    switch (rc) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT: return damaged(path, what, err);
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return muster_fail(err, MUSTER_ECREATE,
                           "cannot write the store %s: %s; look at the permissions of the folder, "
                           "or set MUSTER_HOME to one of yours",
                           path, what);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return muster_fail(err, MUSTER_EAGAIN, "the store %s is in use by another process", path);
    case SQLITE_NOMEM: return muster_fail(err, MUSTER_ENOMEM, "out of memory in the store");
    default: return muster_fail(err, MUSTER_EIO, "the store %s: %s", path, what);
    }
}

int database_fail(const struct store *store, int rc, struct muster_err *err)
{
    return database_fail_at(store->path, store->db, rc, err);
}

static int execute(struct store *store, const char *text, struct muster_err *err)
{
    int rc = sqlite3_exec(store->db, text, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : database_fail(store, rc, err);
}

/* Returns the text or number that a statement returns, as text. */
static int ask_text(struct store *store, const char *text, char ret[TEXT_BYTES],
                    struct muster_err *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(store->db, text, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
    }
    const char *value = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    int r = value ? snprintf(ret, TEXT_BYTES, "%s", value) : database_fail(store, rc, err);
    sqlite3_finalize(statement);
    return r < 0 ? r : 0;
}

/* Finds a file that was cut off or overwritten now, not in the middle of a job. */
static int examine(struct store *store, struct muster_err *err)
{
    char verdict[TEXT_BYTES];
    int r = ask_text(store, "PRAGMA quick_check(1)", verdict, err);
    if (r < 0) {
        return r;
    }
    const char *last_line = strrchr(verdict, '\n'); /* the line before it only names the file */
    return strcmp(verdict, "ok") == 0
               ? 0
               : damaged(store->path, last_line ? last_line + 1 : verdict, err);
}

static int ask_number(struct store *store, const char *text, long *ret, struct muster_err *err)
{
    char value[TEXT_BYTES];
    int r = ask_text(store, text, value, err);
    *ret = r < 0 ? 0 : strtol(value, NULL, 10);
    return r;
}

static int execute_all(struct store *store, const char *first, const char *second,
                       struct muster_err *err)
{
    int r = execute(store, "BEGIN IMMEDIATE", err);
    r = r < 0 ? r : execute(store, first, err);
    r = r < 0 ? r : execute(store, second, err);
    r = r < 0 ? r : execute(store, "COMMIT", err);
    if (r < 0 && !sqlite3_get_autocommit(store->db)) {
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return r;
}

static int make_schema(struct store *store, struct muster_err *err)
{
    long tables;
    int r = ask_number(store, "SELECT count(*) FROM sqlite_master", &tables, err);
    if (r == 0 && tables > 0) {
        r = muster_fail(err, MUSTER_EDATA,
                        "%s is a database of another program: move it away, or use another "
                        "MUSTER_HOME",
                        store->path);
    }
    return r < 0 ? r : execute_all(store, schema, "", err);
}

/* Changes one layout after another; each change is done as a whole or not at all. */
static int migrate(struct store *store, long found, struct muster_err *err)
{
    for (long layout = found; layout < LAYOUT; layout++) {
        const struct migration *m = &migrations[layout - 1];
        char now[TEXT_BYTES];
        (void)snprintf(now, sizeof now, "PRAGMA user_version = %ld", layout + 1);
        int r = m->alone ? execute(store, m->text, err) : execute_all(store, m->text, now, err);
        r = r < 0 || !m->alone ? r : execute(store, now, err);
        if (r < 0) {
            return muster_wrap(err, "making layout %ld of layout %ld", layout + 1, layout);
        }
    }
    return 0;
}

static int open_layout(struct store *store, struct muster_err *err)
{
    long found;
    int r = ask_number(store, "PRAGMA user_version", &found, err);
    if (r < 0 || found == 0) {
        return r < 0 ? r : make_schema(store, err);
    }
    if (found < 0 || found > LAYOUT) {
        return muster_fail(
            err, MUSTER_EDATA,
            "the store %s was made by a newer muster (layout %ld, this one knows %d): "
            "use that one, or another MUSTER_HOME",
            store->path, found, LAYOUT);
    }
    r = examine(store, err);
    return r < 0 ? r : migrate(store, found, err);
}

static int prepare(struct store *store, struct muster_err *err)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        int rc = sqlite3_prepare_v3(store->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &store->statements[i], NULL);
        if (rc != SQLITE_OK) {
            return database_fail(store, rc, err);
        }
    }
    return 0;
}

/* Makes the file private: it contains secrets, and others may be able to read the folder. SQLite
 * will report what fails here. SQLite's ":memory:" is not a file. */
static void make_private(const char *path)
{
    if (strcmp(path, ":memory:") == 0) {
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd >= 0) {
        close(fd);
    } else {
        (void)chmod(path, S_IRUSR | S_IWUSR);
    }
}

static int count_frames(void *data, sqlite3 *db, const char *name, int frames)
{
    struct store *store = data;
    (void)db;
    (void)name;
    store->wal_frames = frames;
    return SQLITE_OK;
}

/* Turns on the WAL. This must come first, because a new file needs the syncs. This connection is
 * never the last one to close; the last one moves the WAL into the database. */
static int use_wal(struct store *store, struct muster_err *err)
{
    char mode[TEXT_BYTES];
    int r = ask_text(store, "PRAGMA journal_mode = WAL", mode, err);
    if (r == 0 && strcmp(mode, "wal") != 0 && strcmp(mode, "memory") != 0) {
        r = muster_fail(err, MUSTER_EIO, "the store %s: SQLite keeps no WAL here, but \"%s\"",
                        store->path, mode);
    }
    (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_wal_hook(store->db, count_frames, store);
    return r;
}

int database_open(struct store *store, struct muster_err *err)
{
    make_private(store->path);
    int rc = sqlite3_open_v2(store->path, &store->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                             wal_vfs());
    if (rc != SQLITE_OK) {
        return database_fail(store, rc, err);
    }
    sqlite3_busy_timeout(store->db, BUSY_MS);
    int r = use_wal(store, err);
    r = r < 0 ? r : execute(store, settings, err);
    r = r < 0 ? r : open_layout(store, err);
    return r < 0 ? r : prepare(store, err);
}

void database_close(struct store *store)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_finalize(store->statements[i]);
    }
    int rc = sqlite3_close(store->db);
    assert(rc == SQLITE_OK);
    (void)rc;
    store->db = NULL;
}

/* ---- statements ---- */

static int bind(sqlite3_stmt *statement, const char *types, va_list args)
{
    int rc = SQLITE_OK;
    for (int i = 1; *types && rc == SQLITE_OK; types++, i++) {
        if (*types == 'i') {
            rc = sqlite3_bind_int64(statement, i, va_arg(args, int64_t));
        } else {
            assert(*types == 't');
            rc = sqlite3_bind_text(statement, i, va_arg(args, const char *), -1, SQLITE_STATIC);
        }
    }
    return rc;
}

static int finish(struct store *store, enum statement id, int rc, struct muster_err *err)
{
    if (rc == SQLITE_ROW) {
        return 1;
    }
    int r = rc == SQLITE_DONE ? 0 : database_fail(store, rc, err);
    sqlite3_reset(store->statements[id]);
    return r;
}

int sql_step(struct store *store, enum statement id, struct muster_err *err, const char *types, ...)
{
    sqlite3_stmt *statement = store->statements[id];
    sqlite3_reset(statement);
    va_list args;
    va_start(args, types);
    int rc = bind(statement, types, args);
    va_end(args);
    return finish(store, id, rc == SQLITE_OK ? sqlite3_step(statement) : rc, err);
}

int sql_next(struct store *store, enum statement id, struct muster_err *err)
{
    return finish(store, id, sqlite3_step(store->statements[id]), err);
}

void sql_end(struct store *store, enum statement id)
{
    sqlite3_reset(store->statements[id]);
}

const char *sql_text(const struct store *store, enum statement id, int column)
{
    return (const char *)sqlite3_column_text(store->statements[id], column);
}

int64_t sql_int(const struct store *store, enum statement id, int column)
{
    return sqlite3_column_int64(store->statements[id], column);
}
