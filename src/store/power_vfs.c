/* The disk of power.c as a VFS of SQLite. See power.h. */
#include "store/power.h"

#include "store/power_disk.h"

#include <sqlite3.h>
#include <string.h>

struct handle {
    sqlite3_file base; /* first */
    struct disk_file *file;
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs power_vfs;

static struct disk_file *of(sqlite3_file *file)
{
    return ((struct handle *)file)->file;
}

static int power_close(sqlite3_file *file)
{
    (void)file;
    return SQLITE_OK;
}

static int power_read(sqlite3_file *file, void *into, int count, sqlite3_int64 at)
{
    const struct image *image = &of(file)->now;
    size_t start = (size_t)at < image->size ? (size_t)at : image->size;
    size_t here = image->size - start < (size_t)count ? image->size - start : (size_t)count;
    if (power_is_off()) {
        return SQLITE_IOERR_READ;
    }
    memset(into, 0, (size_t)count);
    if (here > 0) {
        memcpy(into, image->bytes + start, here);
    }
    return here == (size_t)count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

/* A write in which power fails may be on the disk in part, too. */
static int power_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 at)
{
    bool was_off = power_is_off();
    bool on = power_spend();
    if (!was_off) {
        power_note(of(file), bytes, (size_t)count, (size_t)at);
    }
    if (!on) {
        return SQLITE_IOERR_WRITE;
    }
    power_write_at(&of(file)->now, bytes, (size_t)count, (size_t)at);
    return SQLITE_OK;
}

static int power_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    bool was_off = power_is_off();
    bool on = power_spend();
    if (!was_off) {
        power_note(of(file), NULL, 0, (size_t)size);
    }
    if (!on) {
        return SQLITE_IOERR_TRUNCATE;
    }
    power_resize(&of(file)->now, (size_t)size);
    return SQLITE_OK;
}

static int power_sync(sqlite3_file *file, int flags)
{
    (void)flags;
    if (!power_spend()) {
        return SQLITE_IOERR_FSYNC;
    }
    power_sync_file(of(file));
    return SQLITE_OK;
}

static int power_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)of(file)->now.size;
    return power_is_off() ? SQLITE_IOERR_FSTAT : SQLITE_OK;
}

static int power_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int power_reserved(sqlite3_file *file, int *ret)
{
    (void)file;
    *ret = 0;
    return SQLITE_OK;
}

static int power_control(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int power_sector(sqlite3_file *file)
{
    (void)file;
    return POWER_SECTOR_BYTES;
}

/* As the system's VFS says: a write leaves other bytes of its sector alone. */
static int power_device(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1, /* no shared memory: the store's exclusive lock needs none */
    .xClose = power_close,
    .xRead = power_read,
    .xWrite = power_write,
    .xTruncate = power_truncate,
    .xSync = power_sync,
    .xFileSize = power_size,
    .xLock = power_lock,
    .xUnlock = power_lock,
    .xCheckReservedLock = power_reserved,
    .xFileControl = power_control,
    .xSectorSize = power_sector,
    .xDeviceCharacteristics = power_device,
};

static int power_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *handle, int flags, int *ret)
{
    (void)vfs;
    struct handle *h = (struct handle *)handle;
    h->base.pMethods = NULL;
    if (power_is_off() || !name) {
        return SQLITE_CANTOPEN;
    }
    h->file = power_find_or_add(name);
    if (!h->file->exists && !(flags & SQLITE_OPEN_CREATE)) {
        return SQLITE_CANTOPEN;
    }
    h->file->exists = true;
    h->base.pMethods = &methods;
    if (ret) {
        *ret = flags;
    }
    return SQLITE_OK;
}

/* Its content stays on the disk until the removal does, too. */
static int power_delete(sqlite3_vfs *vfs, const char *name, int then_sync)
{
    (void)vfs;
    struct disk_file *file = power_find(name);
    if (!power_spend()) {
        return SQLITE_IOERR_DELETE;
    }
    if (!file || !file->exists) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    file->exists = false;
    file->now.size = 0;
    if (then_sync) {
        power_sync_folder();
    }
    return SQLITE_OK;
}

static int power_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    (void)vfs;
    const struct disk_file *file = power_find(name);
    *ret = file && file->exists && (flags != SQLITE_ACCESS_EXISTS || file->now.size > 0);
    return power_is_off() ? SQLITE_IOERR_ACCESS : SQLITE_OK;
}

void power_install(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    power_vfs = *real_vfs;
    power_vfs.szOsFile = (int)sizeof(struct handle);
    power_vfs.zName = "power";
    power_vfs.xOpen = power_open;
    power_vfs.xDelete = power_delete;
    power_vfs.xAccess = power_access;
    sqlite3_vfs_register(&power_vfs, 1);
}

void power_uninstall(void)
{
    power_reset(0, NULL, NULL);
    sqlite3_vfs_unregister(&power_vfs);
}
