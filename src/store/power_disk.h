/* The functions of the disk in power.c that power_vfs.c uses. Tests only. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum { POWER_FILES_MAX = 64, POWER_NAME_BYTES = 256, POWER_SECTOR_BYTES = 512 };

struct image {
    unsigned char *bytes;
    size_t size;
};

/* A write, or, if bytes is NULL, a truncation to `at`. */
struct change {
    unsigned char *bytes;
    size_t at;
    size_t count;
};

/* A file. Several may have the same name: one that exists, and older ones whose removal is not
 * synced. */
struct disk_file {
    char name[POWER_NAME_BYTES]; /* "": this entry is free */
    int users;                   /* number of handles */
    bool exists;
    bool gone;                           /* certainly removed: it lasts as long as its handles */
    bool on_disk;                        /* its name is certainly on the disk */
    int held[SQLITE_LOCK_EXCLUSIVE + 1]; /* number of handles at each level of SQLite's locks */
    struct image now;
    struct image disk;
    struct change *changes; /* since the last sync */
    size_t change_count;
};

void power_resize(struct image *image, size_t size);
void power_write_at(struct image *image, const unsigned char *bytes, size_t count, size_t at);

/* Called before and after each function that follows. */
void power_lock(void);
void power_unlock(void);

/* Returns NULL if no file of that name exists. */
struct disk_file *power_find(const char *name);
struct disk_file *power_add(const char *name);
void power_release(struct disk_file *file);

/* Notes a change that is not synced; if bytes is NULL, a truncation to `at`. */
void power_note(struct disk_file *file, const void *bytes, size_t count, size_t at);
/* Counts one more operation. Returns false if power is off, perhaps because of this one. */
bool power_spend(void);
void power_sync_file(struct disk_file *file);
/* Syncs the names of the files, too. */
void power_sync_folder(void);
