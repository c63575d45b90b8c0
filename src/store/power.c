/* The simulated disk: what was written, what is on it, and what a power cut leaves. See power.h. */
#include "store/power_disk.h"

#include "store/power.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct disk_file files[POWER_FILES_MAX];
    unsigned seed;
    long until_failure; /* 0: never */
    bool off;
    void (*synced)(void *data);
    void *data;
} disk;

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void power_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void power_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* ---- images ---- */

void power_resize(struct image *image, size_t size)
{
    if (size > image->size) {
        image->bytes = realloc(image->bytes, size);
        assert(image->bytes);
        memset(image->bytes + image->size, 0, size - image->size);
    }
    image->size = size;
}

void power_write_at(struct image *image, const unsigned char *bytes, size_t count, size_t at)
{
    if (at + count > image->size) {
        power_resize(image, at + count);
    }
    memcpy(image->bytes + at, bytes, count);
}

static void copy_image(struct image *into, const struct image *from)
{
    into->size = 0;
    power_resize(into, from->size);
    if (from->size > 0) {
        memcpy(into->bytes, from->bytes, from->size);
    }
}

/* ---- files ---- */

static void forget_changes(struct disk_file *file)
{
    for (size_t i = 0; i < file->change_count; i++) {
        free(file->changes[i].bytes);
    }
    free(file->changes);
    file->changes = NULL;
    file->change_count = 0;
}

static void forget_file(struct disk_file *file)
{
    forget_changes(file);
    free(file->now.bytes);
    free(file->disk.bytes);
    *file = (struct disk_file){0};
}

struct disk_file *power_find(const char *name)
{
    for (size_t i = 0; i < POWER_FILES_MAX; i++) {
        if (disk.files[i].exists && strcmp(disk.files[i].name, name) == 0) {
            return &disk.files[i];
        }
    }
    return NULL;
}

struct disk_file *power_add(const char *name)
{
    struct disk_file *file = disk.files;
    while (file < disk.files + POWER_FILES_MAX && *file->name) {
        file++;
    }
    assert(file < disk.files + POWER_FILES_MAX && strlen(name) < POWER_NAME_BYTES);
    memcpy(file->name, name, strlen(name) + 1);
    file->exists = true;
    return file;
}

void power_note(struct disk_file *file, const void *bytes, size_t count, size_t at)
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

/* Counts one operation; returns false if power is off. */
bool power_spend(void)
{
    if (disk.until_failure > 0 && --disk.until_failure == 0) {
        disk.off = true;
    }
    return !disk.off;
}

void power_sync_folder(void)
{
    for (size_t i = 0; i < POWER_FILES_MAX; i++) {
        struct disk_file *file = &disk.files[i];
        file->on_disk = file->exists;
        file->gone = *file->name && !file->exists;
        if (file->gone && file->users == 0) {
            forget_file(file);
        }
    }
}

void power_release(struct disk_file *file)
{
    assert(file->users > 0);
    file->users--;
    if (file->gone && file->users == 0) {
        forget_file(file);
    }
}

static bool is_wal(const struct disk_file *file)
{
    size_t length = strlen(file->name);
    return length > 4 && strcmp(file->name + length - 4, "-wal") == 0;
}

/* Syncs a file. Like the system's VFS, the first sync of a new file also syncs the folder. */
void power_sync_file(struct disk_file *file)
{
    if (disk.synced && is_wal(file)) {
        disk.synced(disk.data);
    }
    copy_image(&file->disk, &file->now);
    forget_changes(file);
    if (file->exists && !file->on_disk) {
        power_sync_folder();
    }
}

/* ---- the cut ---- */

static bool coin(void)
{
    return rand_r(&disk.seed) & 0x100;
}

/* Applies a write sector by sector; each sector is on the disk or not. */
static void apply_torn(struct image *image, const struct change *change)
{
    for (size_t done = 0; done < change->count;) {
        size_t at = change->at + done;
        size_t piece = POWER_SECTOR_BYTES - at % POWER_SECTOR_BYTES;
        piece = piece < change->count - done ? piece : change->count - done;
        if (coin()) {
            power_write_at(image, change->bytes + done, piece, at);
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

static void apply(struct disk_file *file, const struct change *change)
{
    if (change->bytes) {
        power_write_at(&file->disk, change->bytes, change->count, change->at);
    } else {
        power_resize(&file->disk, change->at);
    }
}

/* Decides what is on the disk: the changes up to some point; or those after it; or each change as a
 * whole or not at all; or all of them in any order, torn. */
static void cut(struct disk_file *file)
{
    enum { FIRST, LAST, WHOLE, TORN, WAYS };
    int way = rand_r(&disk.seed) / 256 % WAYS;
    size_t point = (size_t)rand_r(&disk.seed) % (file->change_count + 1);
    if (way == TORN) {
        shuffle(file->changes, file->change_count);
    }
    for (size_t i = 0; i < file->change_count; i++) {
        const struct change *change = &file->changes[i];
        if (way == TORN && change->bytes) {
            apply_torn(&file->disk, change);
        } else if (way == WHOLE ? coin() : (i < point) == (way == FIRST)) {
            apply(file, change);
        }
    }
    file->exists = file->on_disk = true;
    copy_image(&file->now, &file->disk);
    forget_changes(file);
}

/* Chooses the file that the name has after the cut, or none: by chance, unless the folder is
 * synced. */
static struct disk_file *choose(const char *name)
{
    struct disk_file *chosen = NULL;
    unsigned count = 1; /* the choice of no file */
    for (size_t i = 0; i < POWER_FILES_MAX; i++) {
        struct disk_file *file = &disk.files[i];
        if (strcmp(file->name, name) != 0 || file->gone) {
            continue;
        }
        if (file->exists && file->on_disk) {
            return file;
        }
        count++;
        chosen = (unsigned)rand_r(&disk.seed) / 256 % count == 0 ? file : chosen;
    }
    return chosen;
}

static void cut_name(const char *name)
{
    struct disk_file *kept = choose(name);
    for (size_t i = 0; i < POWER_FILES_MAX; i++) {
        struct disk_file *file = &disk.files[i];
        if (strcmp(file->name, name) == 0 && file != kept) {
            forget_file(file);
        }
    }
    if (kept) {
        cut(kept);
    }
}

void power_on(void)
{
    power_lock();
    for (size_t i = 0; i < POWER_FILES_MAX; i++) {
        char name[POWER_NAME_BYTES];
        assert(disk.files[i].users == 0);
        memcpy(name, disk.files[i].name, sizeof name);
        if (*name) {
            cut_name(name);
        }
    }
    disk.off = false;
    disk.until_failure = 0;
    disk.synced = NULL; /* later syncs are after the cut */
    power_unlock();
}

bool power_is_off(void)
{
    power_lock();
    bool off = disk.off;
    power_unlock();
    return off;
}

void power_fail_at(long n)
{
    power_lock();
    disk.until_failure = n;
    power_unlock();
}

void power_reset(unsigned seed, void (*synced)(void *data), void *data)
{
    for (size_t i = 0; i < POWER_FILES_MAX; i++) {
        forget_file(&disk.files[i]);
    }
    disk.seed = seed;
    disk.off = false;
    disk.until_failure = 0;
    disk.synced = synced;
    disk.data = data;
}
