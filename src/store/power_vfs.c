/* The disk of power.c as a VFS of SQLite. See power.h. */
#include "store/power.h"

#include "store/power_disk.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { REGIONS_MAX = 64 };

struct handle {
    sqlite3_file base; /* must be the first member */
    struct disk_file *file;
    int level;       /* level of its lock on the file */
    unsigned shared; /* one bit for each lock of the index of the WAL that it holds */
    unsigned exclusive;
    bool maps;
};

/* The index of the WAL, for all connections: only one store is open at a time. */
static struct {
    void *regions[REGIONS_MAX];
    int users;
    int shared[SQLITE_SHM_NLOCK];
    bool exclusive[SQLITE_SHM_NLOCK];
} wal_index;

static sqlite3_vfs *real_vfs;
static sqlite3_vfs power_vfs;

static struct disk_file *of(sqlite3_file *file)
{
    return ((struct handle *)file)->file;
}

static int close_file(sqlite3_file *file)
{
    struct handle *h = (struct handle *)file;
    of(file)->held[h->level]--;
    power_release(of(file));
    return SQLITE_OK;
}

static int read_file(sqlite3_file *file, void *into, int count, sqlite3_int64 at)
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

/* A write during which power fails may be partly on the disk. */
static int write_file(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 at)
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

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
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

static int sync_file_of(sqlite3_file *file, int flags)
{
    (void)flags;
    if (!power_spend()) {
        return SQLITE_IOERR_FSYNC;
    }
    power_sync_file(of(file));
    return SQLITE_OK;
}

static int size_of_file(sqlite3_file *file, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)of(file)->now.size;
    return power_is_off() ? SQLITE_IOERR_FSTAT : SQLITE_OK;
}

/* ---- locks: without them the first connection to close would think that it is the last ---- */

static bool others_hold(const struct handle *h, int level)
{
    int count = h->level >= level ? -1 : 0;
    for (int i = level; i <= SQLITE_LOCK_EXCLUSIVE; i++) {
        count += h->file->held[i];
    }
    return count > 0;
}

static int set_level(struct handle *h, int level)
{
    h->file->held[h->level]--;
    h->file->held[level]++;
    h->level = level;
    return SQLITE_OK;
}

static int lock_file(sqlite3_file *file, int level)
{
    static const int excludes[] = {
        [SQLITE_LOCK_SHARED] = SQLITE_LOCK_PENDING,
        [SQLITE_LOCK_RESERVED] = SQLITE_LOCK_RESERVED,
        [SQLITE_LOCK_PENDING] = SQLITE_LOCK_RESERVED,
        [SQLITE_LOCK_EXCLUSIVE] = SQLITE_LOCK_SHARED,
    };
    struct handle *h = (struct handle *)file;
    if (level <= h->level) {
        return SQLITE_OK;
    }
    return others_hold(h, excludes[level]) ? SQLITE_BUSY : set_level(h, level);
}

static int unlock_file(sqlite3_file *file, int level)
{
    struct handle *h = (struct handle *)file;
    return level < h->level ? set_level(h, level) : SQLITE_OK;
}

static int file_is_reserved(sqlite3_file *file, int *ret)
{
    *ret = others_hold((struct handle *)file, SQLITE_LOCK_RESERVED);
    return SQLITE_OK;
}

/* ---- the index of the WAL ---- */

static int map_index(sqlite3_file *file, int region, int size, int extend, void volatile **ret)
{
    struct handle *h = (struct handle *)file;
    if (region >= REGIONS_MAX) {
        return SQLITE_NOMEM;
    }
    wal_index.users += !h->maps;
    h->maps = true;
    if (!wal_index.regions[region] && extend) {
        wal_index.regions[region] = calloc(1, (size_t)size);
    }
    *ret = wal_index.regions[region];
    return SQLITE_OK;
}

static void unlock_index(struct handle *h, int i)
{
    unsigned bit = 1U << i;
    wal_index.shared[i] -= (h->shared & bit) != 0;
    wal_index.exclusive[i] = wal_index.exclusive[i] && !(h->exclusive & bit);
    h->shared &= ~bit;
    h->exclusive &= ~bit;
}

/* Locks all of them, or none. */
static int lock_index(sqlite3_file *file, int first, int count, int flags)
{
    struct handle *h = (struct handle *)file;
    for (int i = first; i < first + count && flags & SQLITE_SHM_LOCK; i++) {
        bool mine = h->shared & (1U << i);
        if (wal_index.exclusive[i] ||
            (flags & SQLITE_SHM_EXCLUSIVE && wal_index.shared[i] > mine)) {
            return SQLITE_BUSY;
        }
    }
    for (int i = first; i < first + count; i++) {
        unlock_index(h, i);
        if (flags & SQLITE_SHM_LOCK && flags & SQLITE_SHM_EXCLUSIVE) {
            h->exclusive |= 1U << i;
            wal_index.exclusive[i] = true;
        } else if (flags & SQLITE_SHM_LOCK) {
            h->shared |= 1U << i;
            wal_index.shared[i]++;
        }
    }
    return SQLITE_OK;
}

static void order_index(sqlite3_file *file)
{
    (void)file;
    atomic_thread_fence(memory_order_seq_cst);
}

static int unmap_index(sqlite3_file *file, int delete)
{
    struct handle *h = (struct handle *)file;
    (void)delete;
    wal_index.users -= h->maps;
    h->maps = false;
    for (int i = 0; i < REGIONS_MAX && wal_index.users == 0; i++) {
        free(wal_index.regions[i]);
        wal_index.regions[i] = NULL;
    }
    return SQLITE_OK;
}

/* ---- the methods, one at a time ---- */

#define LOCKED(name, parameters, arguments)                                                        \
    static int power_##name parameters                                                             \
    {                                                                                              \
        power_lock();                                                                              \
        int rc = name arguments;                                                                   \
        power_unlock();                                                                            \
        return rc;                                                                                 \
    }

LOCKED(close_file, (sqlite3_file * file), (file))
LOCKED(read_file, (sqlite3_file * file, void *into, int n, sqlite3_int64 at), (file, into, n, at))
LOCKED(write_file, (sqlite3_file * file, const void *from, int n, sqlite3_int64 at),
       (file, from, n, at))
LOCKED(truncate_file, (sqlite3_file * file, sqlite3_int64 size), (file, size))
LOCKED(sync_file_of, (sqlite3_file * file, int flags), (file, flags))
LOCKED(size_of_file, (sqlite3_file * file, sqlite3_int64 *ret), (file, ret))
LOCKED(lock_file, (sqlite3_file * file, int level), (file, level))
LOCKED(unlock_file, (sqlite3_file * file, int level), (file, level))
LOCKED(file_is_reserved, (sqlite3_file * file, int *ret), (file, ret))
LOCKED(map_index, (sqlite3_file * file, int region, int size, int extend, void volatile **ret),
       (file, region, size, extend, ret))
LOCKED(lock_index, (sqlite3_file * file, int first, int count, int flags),
       (file, first, count, flags))
LOCKED(unmap_index, (sqlite3_file * file, int delete), (file, delete))

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

/* Reports what the system's VFS reports: a write does not change other bytes of its sector. */
static int power_device(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = power_close_file,
    .xRead = power_read_file,
    .xWrite = power_write_file,
    .xTruncate = power_truncate_file,
    .xSync = power_sync_file_of,
    .xFileSize = power_size_of_file,
    .xLock = power_lock_file,
    .xUnlock = power_unlock_file,
    .xCheckReservedLock = power_file_is_reserved,
    .xFileControl = power_control,
    .xSectorSize = power_sector,
    .xDeviceCharacteristics = power_device,
    .xShmMap = power_map_index,
    .xShmLock = power_lock_index,
    .xShmBarrier = order_index,
    .xShmUnmap = power_unmap_index,
};

static int open_file(const char *name, sqlite3_file *handle, int flags, int *ret)
{
    struct handle *h = (struct handle *)handle;
    *h = (struct handle){0};
    if (power_is_off() || !name) {
        return SQLITE_CANTOPEN;
    }
    h->file = power_find(name);
    if (!h->file && !(flags & SQLITE_OPEN_CREATE)) {
        return SQLITE_CANTOPEN;
    }
    h->file = h->file ? h->file : power_add(name);
    h->file->users++;
    h->file->held[SQLITE_LOCK_NONE]++;
    h->base.pMethods = &methods;
    if (ret) {
        *ret = flags;
    }
    return SQLITE_OK;
}

/* The file stays on the disk until its removal is synced. */
static int remove_file(const char *name, int then_sync)
{
    struct disk_file *file = power_find(name);
    if (!power_spend()) {
        return SQLITE_IOERR_DELETE;
    }
    if (!file) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    file->exists = false;
    if (then_sync) {
        power_sync_folder();
    }
    return SQLITE_OK;
}

static int look_for_file(const char *name, int flags, int *ret)
{
    const struct disk_file *file = power_find(name);
    *ret = file && (flags != SQLITE_ACCESS_EXISTS || file->now.size > 0);
    return power_is_off() ? SQLITE_IOERR_ACCESS : SQLITE_OK;
}

LOCKED(open_file, (sqlite3_vfs * vfs, const char *name, sqlite3_file *file, int flags, int *ret),
       (name, file, ((void)vfs, flags), ret))
LOCKED(remove_file, (sqlite3_vfs * vfs, const char *name, int sync), (name, ((void)vfs, sync)))
LOCKED(look_for_file, (sqlite3_vfs * vfs, const char *name, int flags, int *ret),
       (name, ((void)vfs, flags), ret))

void power_install(void)
{
    real_vfs = sqlite3_vfs_find("unix-excl");
    power_vfs = *real_vfs;
    power_vfs.szOsFile = (int)sizeof(struct handle);
    power_vfs.zName = "unix-excl";
    power_vfs.xOpen = power_open_file;
    power_vfs.xDelete = power_remove_file;
    power_vfs.xAccess = power_look_for_file;
    sqlite3_vfs_register(&power_vfs, 1);
}

void power_uninstall(void)
{
    power_reset(0, NULL, NULL);
    sqlite3_vfs_unregister(&power_vfs);
}
