/* SQLite's VFS with one difference: when the WAL is restarted, it becomes a new file.
 *
 * SQLite overwrites a WAL that is in the database from its start, and before that syncs its header,
 * on the thread that commits: otherwise a power cut could leave the old header with old and new
 * frames, and the old ones would be written over newer pages. Here the old file is removed and a
 * new one begun, so that the disk has the one, or the other, or none: each of them is consistent,
 * in whatever order it is written, and no thread has to wait for the disk (docs/rationale.md).
 *
 * Each connection has a descriptor of its own; after another connection has restarted the WAL, it
 * opens the file again at its next use. That is never while it reads: the connection that restarts
 * the WAL has SQLite's lock of all readers, and all frames are in the database.
 *
 * Layer: services. Thread: any; a connection is used by one at a time.
 */
#include "store/internal.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* With it, file locks belong to the process, and the index of the WAL is the process's own memory:
 * there is one controller per file, and no file of shared memory. */
static const char under_name[] = "unix-excl";

/* FILE_BYTES: enough for the structs of any VFS below this one. NAME_END_BYTES: SQLite's names end
 * with several NUL bytes. */
enum { FILE_BYTES = 1024, NAME_END_BYTES = 4 };

static const int wal_flags = SQLITE_OPEN_WAL | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;

/* A WAL file, shared by all connections that have it open. */
struct wal {
    struct wal *next;
    int users;
    _Atomic unsigned begun; /* how often it was begun again */
    char path[];
};

struct handle {
    sqlite3_file base; /* must be the first member */
    struct wal *wal;
    sqlite3_file *real;
    unsigned seen; /* value of wal->begun when `real` was opened */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* for the list and for `users` */
static struct wal *wals;

static sqlite3_vfs *under(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(under_name);
    assert(vfs && vfs->szOsFile <= FILE_BYTES);
    return vfs;
}

/* ---- the list ---- */

static struct wal *take_wal(const char *path)
{
    pthread_mutex_lock(&mutex);
    struct wal *wal = wals;
    while (wal && strcmp(wal->path, path) != 0) {
        wal = wal->next;
    }
    size_t length = strlen(path);
    if (!wal && (wal = calloc(1, sizeof *wal + length + NAME_END_BYTES))) {
        memcpy(wal->path, path, length);
        wal->next = wals;
        wals = wal;
    }
    if (wal) {
        wal->users++;
    }
    pthread_mutex_unlock(&mutex);
    return wal;
}

static void drop_wal(struct wal *wal)
{
    pthread_mutex_lock(&mutex);
    assert(wal->users > 0);
    if (--wal->users == 0) {
        struct wal **at = &wals;
        while (*at != wal) {
            at = &(*at)->next;
        }
        *at = wal->next;
        free(wal);
    }
    pthread_mutex_unlock(&mutex);
}

/* ---- one descriptor ---- */

static void close_real(sqlite3_file *real)
{
    if (real && real->pMethods) {
        (void)real->pMethods->xClose(real);
    }
    free(real);
}

static int open_real(const char *path, int flags, int *ret_flags, sqlite3_file **ret)
{
    sqlite3_file *real = calloc(1, FILE_BYTES);
    int rc = real ? under()->xOpen(under(), path, real, flags, ret_flags) : SQLITE_NOMEM;
    if (rc != SQLITE_OK) {
        close_real(real);
        return rc;
    }
    *ret = real;
    return SQLITE_OK;
}

static int replace_real(struct handle *h)
{
    sqlite3_file *real = NULL;
    int rc = open_real(h->wal->path, wal_flags, NULL, &real);
    if (rc == SQLITE_OK) {
        close_real(h->real);
        h->real = real;
    }
    return rc;
}

/* Makes h->real the present file. */
static int look(struct handle *h)
{
    unsigned begun = atomic_load(&h->wal->begun);
    if (h->seen == begun) {
        return SQLITE_OK;
    }
    int rc = replace_real(h);
    h->seen = rc == SQLITE_OK ? begun : h->seen;
    return rc;
}

/* Begins a new file. If a step fails, the next attempt repeats it: SQLite then writes the header
 * again. */
static int begin_anew(struct handle *h)
{
    sqlite3_int64 size = 0;
    int rc = h->real->pMethods->xFileSize(h->real, &size);
    if (rc != SQLITE_OK || size == 0) {
        return rc;
    }
    rc = under()->xDelete(under(), h->wal->path, 0);
    if (rc == SQLITE_OK || rc == SQLITE_IOERR_DELETE_NOENT) {
        rc = replace_real(h);
    }
    if (rc == SQLITE_OK) {
        h->seen = atomic_fetch_add(&h->wal->begun, 1) + 1;
    }
    return rc;
}

/* ---- SQLite's methods ---- */

static int wal_close(sqlite3_file *file)
{
    struct handle *h = (struct handle *)file;
    close_real(h->real);
    drop_wal(h->wal);
    return SQLITE_OK;
}

static int wal_read(sqlite3_file *file, void *into, int count, sqlite3_int64 at)
{
    struct handle *h = (struct handle *)file;
    int rc = look(h);
    return rc == SQLITE_OK ? h->real->pMethods->xRead(h->real, into, count, at) : rc;
}

/* The header is at 0, and only a connection that begins the WAL again writes it. */
static int wal_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 at)
{
    struct handle *h = (struct handle *)file;
    int rc = look(h);
    if (rc == SQLITE_OK && at == 0) {
        rc = begin_anew(h);
    }
    return rc == SQLITE_OK ? h->real->pMethods->xWrite(h->real, bytes, count, at) : rc;
}

static int wal_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct handle *h = (struct handle *)file;
    int rc = look(h);
    if (rc == SQLITE_OK && size == 0) {
        return begin_anew(h);
    }
    return rc == SQLITE_OK ? h->real->pMethods->xTruncate(h->real, size) : rc;
}

static int wal_sync(sqlite3_file *file, int flags)
{
    struct handle *h = (struct handle *)file;
    int rc = look(h);
    return rc == SQLITE_OK ? h->real->pMethods->xSync(h->real, flags) : rc;
}

static int wal_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    struct handle *h = (struct handle *)file;
    int rc = look(h);
    return rc == SQLITE_OK ? h->real->pMethods->xFileSize(h->real, ret) : rc;
}

static int wal_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level; /* only the database is locked */
    return SQLITE_OK;
}

static int wal_reserved(sqlite3_file *file, int *ret)
{
    (void)file;
    *ret = 0;
    return SQLITE_OK;
}

static int wal_control(sqlite3_file *file, int op, void *arg)
{
    struct handle *h = (struct handle *)file;
    return h->real->pMethods->xFileControl(h->real, op, arg);
}

static int wal_sector(sqlite3_file *file)
{
    struct handle *h = (struct handle *)file;
    return h->real->pMethods->xSectorSize(h->real);
}

static int wal_device(sqlite3_file *file)
{
    struct handle *h = (struct handle *)file;
    return h->real->pMethods->xDeviceCharacteristics(h->real);
}

static const sqlite3_io_methods wal_methods = {
    .iVersion = 1,
    .xClose = wal_close,
    .xRead = wal_read,
    .xWrite = wal_write,
    .xTruncate = wal_truncate,
    .xSync = wal_sync,
    .xFileSize = wal_size,
    .xLock = wal_lock,
    .xUnlock = wal_lock,
    .xCheckReservedLock = wal_reserved,
    .xFileControl = wal_control,
    .xSectorSize = wal_sector,
    .xDeviceCharacteristics = wal_device,
};

/* Reads `begun` before the file is opened, so that a later begin by another connection is
 * noticed. */
static int open_wal(struct handle *h, const char *name, int flags, int *ret_flags)
{
    h->wal = take_wal(name);
    if (!h->wal) {
        return SQLITE_NOMEM;
    }
    h->seen = atomic_load(&h->wal->begun);
    int rc = open_real(h->wal->path, flags, ret_flags, &h->real);
    if (rc != SQLITE_OK) {
        drop_wal(h->wal);
        return rc;
    }
    h->base.pMethods = &wal_methods;
    return SQLITE_OK;
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
    (void)vfs;
    if (!(flags & SQLITE_OPEN_WAL)) {
        return under()->xOpen(under(), name, file, flags, ret);
    }
    *(struct handle *)file = (struct handle){0};
    return open_wal((struct handle *)file, name, flags, ret);
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int then_sync)
{
    (void)vfs;
    return under()->xDelete(under(), name, then_sync);
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    (void)vfs;
    return under()->xAccess(under(), name, flags, ret);
}

const char *wal_vfs(void)
{
    static sqlite3_vfs vfs;
    pthread_mutex_lock(&mutex);
    if (sqlite3_initialize() == SQLITE_OK && !sqlite3_vfs_find("muster")) {
        vfs = *under();
        vfs.pNext = NULL;
        vfs.szOsFile = FILE_BYTES;
        vfs.zName = "muster";
        vfs.xOpen = vfs_open;
        vfs.xDelete = vfs_delete;
        vfs.xAccess = vfs_access;
        (void)sqlite3_vfs_register(&vfs, 0);
    }
    pthread_mutex_unlock(&mutex);
    return "muster";
}
