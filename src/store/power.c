/* See power.h. */
#include "store/power.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 8, NAME_BYTES = 256, SECTOR_BYTES = 512 };

struct image {
    unsigned char *bytes;
    size_t size;
};

/* A write, or (bytes NULL) a truncation to `at`. */
struct change {
    unsigned char *bytes;
    size_t at;
    size_t count;
};

struct disk_file {
    char name[NAME_BYTES];
    bool exists;
    bool on_disk; /* its name is, for sure */
    struct image now;
    struct image disk;
    struct change *changes; /* since the last sync */
    size_t change_count;
};

struct handle {
    sqlite3_file base; /* first */
    struct disk_file *file;
};

static struct {
    struct disk_file files[FILES_MAX];
    unsigned seed;
    long until_failure; /* 0: never */
    bool off;
    void (*synced)(void *data);
    void *data;
} disk;

static sqlite3_vfs *real_vfs;
static sqlite3_vfs power_vfs;

/* ---- images ---- */

static void resize(struct image *image, size_t size)
{
    if (size > image->size) {
        image->bytes = realloc(image->bytes, size);
        assert(image->bytes);
        memset(image->bytes + image->size, 0, size - image->size);
    }
    image->size = size;
}

static void write_at(struct image *image, const unsigned char *bytes, size_t count, size_t at)
{
    if (at + count > image->size) {
        resize(image, at + count);
    }
    memcpy(image->bytes + at, bytes, count);
}

static void copy_image(struct image *into, const struct image *from)
{
    into->size = 0;
    resize(into, from->size);
    if (from->size > 0) {
        memcpy(into->bytes, from->bytes, from->size);
    }
}

/* ---- files ---- */

static struct disk_file *find(const char *name)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        if (strcmp(disk.files[i].name, name) == 0) {
            return &disk.files[i];
        }
    }
    return NULL;
}

static struct disk_file *find_or_add(const char *name)
{
    struct disk_file *file = find(name);
    file = file ? file : find("");
    assert(file && strlen(name) < NAME_BYTES);
    memcpy(file->name, name, strlen(name) + 1);
    return file;
}

static void forget_changes(struct disk_file *file)
{
    for (size_t i = 0; i < file->change_count; i++) {
        free(file->changes[i].bytes);
    }
    free(file->changes);
    file->changes = NULL;
    file->change_count = 0;
}

static void note(struct disk_file *file, const void *bytes, size_t count, size_t at)
{
    file->changes = realloc(file->changes, (file->change_count + 1) * sizeof *file->changes);
    assert(file->changes);
    struct change change = {.at = at, .count = count};
    if (bytes) {
        change.bytes = malloc(count);
        assert(change.bytes);
        memcpy(change.bytes, bytes, count);
    }
    file->changes[file->change_count++] = change;
}

/* False: power is off. */
static bool spend(void)
{
    if (disk.until_failure > 0 && --disk.until_failure == 0) {
        disk.off = true;
    }
    return !disk.off;
}

/* ---- the cut ---- */

static bool coin(void)
{
    return rand_r(&disk.seed) & 0x100;
}

/* Sector by sector, each on the disk or not. */
static void apply_torn(struct image *image, const struct change *change)
{
    for (size_t done = 0; done < change->count;) {
        size_t at = change->at + done;
        size_t piece = SECTOR_BYTES - at % SECTOR_BYTES;
        piece = piece < change->count - done ? piece : change->count - done;
        if (coin()) {
            write_at(image, change->bytes + done, piece, at);
        }
        done += piece;
    }
}

static void shuffle(struct change *list, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)rand_r(&disk.seed) % i;
        struct change swapped = list[i - 1];
        list[i - 1] = list[other];
        list[other] = swapped;
    }
}

static void cut(struct disk_file *file)
{
    if (!coin()) { /* half of the time nothing is left to chance: all in order, up to some point */
        shuffle(file->changes, file->change_count);
    }
    for (size_t i = 0; i < file->change_count; i++) {
        const struct change *change = &file->changes[i];
        if (change->bytes) {
            apply_torn(&file->disk, change);
        } else if (coin()) {
            resize(&file->disk, change->at);
        }
    }
    bool unsure = file->exists != file->on_disk;
    file->exists = unsure ? coin() : file->exists;
    file->on_disk = file->exists;
    if (!file->exists) {
        file->disk.size = 0;
    }
    copy_image(&file->now, &file->disk);
    forget_changes(file);
}

void power_on(void)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        cut(&disk.files[i]);
    }
    disk.off = false;
    disk.until_failure = 0;
    disk.synced = NULL; /* what is synced from here on was there after the cut */
}

bool power_is_off(void)
{
    return disk.off;
}

void power_fail_at(long n)
{
    disk.until_failure = n;
}

void power_reset(unsigned seed, void (*synced)(void *data), void *data)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        struct disk_file *file = &disk.files[i];
        forget_changes(file);
        free(file->now.bytes);
        free(file->disk.bytes);
        *file = (struct disk_file){0};
    }
    disk.seed = seed;
    disk.off = false;
    disk.until_failure = 0;
    disk.synced = synced;
    disk.data = data;
}

/* ---- SQLite's side ---- */

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
    if (disk.off) {
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
    bool was_off = disk.off;
    bool on = spend();
    if (!was_off) {
        note(of(file), bytes, (size_t)count, (size_t)at);
    }
    if (!on) {
        return SQLITE_IOERR_WRITE;
    }
    write_at(&of(file)->now, bytes, (size_t)count, (size_t)at);
    return SQLITE_OK;
}

static int power_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    bool was_off = disk.off;
    bool on = spend();
    if (!was_off) {
        note(of(file), NULL, 0, (size_t)size);
    }
    if (!on) {
        return SQLITE_IOERR_TRUNCATE;
    }
    resize(&of(file)->now, (size_t)size);
    return SQLITE_OK;
}

static void sync_folder(void)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        struct disk_file *file = &disk.files[i];
        file->on_disk = file->exists;
        if (!file->exists) {
            file->disk.size = 0;
            forget_changes(file);
        }
    }
}

/* The system's VFS syncs the folder, too, with the first sync of a new file. */
static int power_sync(sqlite3_file *handle, int flags)
{
    (void)flags;
    struct disk_file *file = of(handle);
    if (!spend()) {
        return SQLITE_IOERR_FSYNC;
    }
    copy_image(&file->disk, &file->now);
    forget_changes(file);
    if (!file->on_disk) {
        sync_folder();
    }
    if (disk.synced) {
        disk.synced(disk.data);
    }
    return SQLITE_OK;
}

static int power_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)of(file)->now.size;
    return disk.off ? SQLITE_IOERR_FSTAT : SQLITE_OK;
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
    return SECTOR_BYTES;
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
    if (disk.off || !name) {
        return SQLITE_CANTOPEN;
    }
    h->file = find_or_add(name);
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
    struct disk_file *file = find(name);
    if (!spend()) {
        return SQLITE_IOERR_DELETE;
    }
    if (!file || !file->exists) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    file->exists = false;
    file->now.size = 0;
    if (then_sync) {
        sync_folder();
    }
    return SQLITE_OK;
}

static int power_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    (void)vfs;
    const struct disk_file *file = find(name);
    *ret = file && file->exists && (flags != SQLITE_ACCESS_EXISTS || file->now.size > 0);
    return disk.off ? SQLITE_IOERR_ACCESS : SQLITE_OK;
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
