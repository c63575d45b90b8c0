/* What power_vfs.c asks of the disk in power.c. Tests only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { POWER_FILES_MAX = 8, POWER_NAME_BYTES = 256, POWER_SECTOR_BYTES = 512 };

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
    char name[POWER_NAME_BYTES];
    bool exists;
    bool on_disk; /* its name is, for sure */
    struct image now;
    struct image disk;
    struct change *changes; /* since the last sync */
    size_t change_count;
};

void power_resize(struct image *image, size_t size);
void power_write_at(struct image *image, const unsigned char *bytes, size_t count, size_t at);

/* NULL: there is none of that name. */
struct disk_file *power_find(const char *name);
struct disk_file *power_find_or_add(const char *name);

/* A change that is not synced; bytes NULL: a truncation to `at`. */
void power_note(struct disk_file *file, const void *bytes, size_t count, size_t at);
/* One more operation. False: power is off, perhaps by this one. */
bool power_spend(void);
void power_sync_file(struct disk_file *file);
/* The names, too, are on the disk. */
void power_sync_folder(void);
