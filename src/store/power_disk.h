/* What power_vfs.c asks of the disk in power.c. Tests only. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum { POWER_FILES_MAX = 64, POWER_NAME_BYTES = 256, POWER_SECTOR_BYTES = 512 };

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

/* Under one name there may be several: one that exists, and older ones whose removal is not synced.
 */
struct disk_file {
    char name[POWER_NAME_BYTES]; /* "": this place is free */
    int users;                   /* handles */
    bool exists;
    bool gone;                           /* removed, for sure: it lasts as long as its handles */
    bool on_disk;                        /* its name is, for sure */
    int held[SQLITE_LOCK_EXCLUSIVE + 1]; /* handles at each level of SQLite's locks */
    struct image now;
    struct image disk;
    struct change *changes; /* since the last sync */
    size_t change_count;
};

void power_resize(struct image *image, size_t size);
void power_write_at(struct image *image, const unsigned char *bytes, size_t count, size_t at);

/* Around all that follows. */
void power_lock(void);
void power_unlock(void);

/* NULL: none of that name exists. */
struct disk_file *power_find(const char *name);
struct disk_file *power_add(const char *name);
void power_release(struct disk_file *file);

/* A change that is not synced; bytes NULL: a truncation to `at`. */
void power_note(struct disk_file *file, const void *bytes, size_t count, size_t at);
/* One more operation. False: power is off, perhaps by this one. */
bool power_spend(void);
void power_sync_file(struct disk_file *file);
/* The names, too, are on the disk. */
void power_sync_folder(void);
