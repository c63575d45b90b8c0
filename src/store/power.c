/* The disk itself: what was written, what is on it, and what a cut leaves. See power.h. */
#include "store/power_disk.h"

#include "store/power.h"

#include <assert.h>
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

struct disk_file *power_find(const char *name)
{
    for (size_t i = 0; i < POWER_FILES_MAX; i++) {
        if (strcmp(disk.files[i].name, name) == 0) {
            return &disk.files[i];
        }
    }
    return NULL;
}

struct disk_file *power_find_or_add(const char *name)
{
    struct disk_file *file = power_find(name);
    file = file ? file : power_find("");
    assert(file && strlen(name) < POWER_NAME_BYTES);
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

/* False: power is off. */
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
        if (!file->exists) {
            file->disk.size = 0;
            forget_changes(file);
        }
    }
}

/* The system's VFS syncs the folder, too, with the first sync of a new file. */
void power_sync_file(struct disk_file *file)
{
    copy_image(&file->disk, &file->now);
    forget_changes(file);
    if (!file->on_disk) {
        power_sync_folder();
    }
    if (disk.synced) {
        disk.synced(disk.data);
    }
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
            power_resize(&file->disk, change->at);
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
    for (size_t i = 0; i < POWER_FILES_MAX; i++) {
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
    for (size_t i = 0; i < POWER_FILES_MAX; i++) {
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
