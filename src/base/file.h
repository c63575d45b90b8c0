/* Files: whole reads with a limit, atomic writes, directories. Services and programs only (does
 * I/O).
 *
 * Layer: base. Errors name the path and what the system said. Thread-safe.
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The whole file, NUL-terminated; the caller frees. "-" is standard input. MUSTER_ETOOBIG over
 * max_bytes. */
int file_read(const char *path, size_t max_bytes, char **ret_text, size_t *ret_bytes,
              struct muster_err *err);

/* Readers see the old bytes or the new ones, also after a crash: temporary file, fsync, rename,
 * fsync of the folder. */
int file_write(const char *path, const void *bytes, size_t count, mode_t mode,
               struct muster_err *err);
/* The same, but not synced: readers see the old or the new one, and a power cut may leave an empty
 * one. For what nobody needs once the machine has stopped; never waits for the disk. */
int file_put(const char *path, const void *bytes, size_t count, mode_t mode,
             struct muster_err *err);

/* Writes to a path that the user names: as file_write, or as file_put unless `sync`; but an
 * existing device, pipe or link is kept, and written to (--write /dev/stdout). Waits for a pipe's
 * reader. */
int file_write_through(const char *path, const void *bytes, size_t count, mode_t mode, bool sync,
                       struct muster_err *err);

/* All of it, however often write takes a part. -1 with errno when it is not all written. */
int file_write_bytes(int fd, const void *bytes, size_t count);

/* The same, then fsync. -1 with errno when it is not all on the disk. */
int file_write_all(int fd, const void *bytes, size_t count);

/* mkdir -p. */
int file_mkdir(const char *path, mode_t mode, struct muster_err *err);

/* rm -r, never following a link or leaving the file system; a missing path is success. */
int file_remove(const char *path, struct muster_err *err);

bool file_exists(const char *path);

/* "cannot WHAT PATH: what the system said (errno)", as `code`, which is returned. ENOSPC is said to
 * be a full disk, but with MUSTER_EOS: of mounts and namespaces it is a limit of the kernel's. */
int file_fail(struct muster_err *err, int code, const char *what, const char *path);

/* "a/b" from "a" and "b"; the caller frees. NULL when out of memory. */
char *file_join(const char *folder, const char *name);
