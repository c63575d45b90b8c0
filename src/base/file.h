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

/* Reads the whole file, with a NUL at the end; the caller frees. "-" is standard input.
 * MUSTER_ETOOBIG over max_bytes. */
int file_read(const char *path, size_t max_bytes, char **ret_text, size_t *ret_bytes,
              struct muster_err *err);

/* Replaces a file: readers see the old bytes or the new ones, also after a crash (temporary file,
 * fsync, rename, fsync of the folder). */
int file_write(const char *path, const void *bytes, size_t count, mode_t mode,
               struct muster_err *err);
/* Replaces a file without syncing: readers see the old or the new file, and a power cut may leave
 * an empty one. It is for files that nobody needs after the machine has stopped; it never waits for
 * the disk. */
int file_put(const char *path, const void *bytes, size_t count, mode_t mode,
             struct muster_err *err);

/* Writes to a path that the user names, as file_put, or as file_write with FILE_SYNC. An existing
 * device, pipe or link is kept, and written to (--write /dev/stdout). Waits for the reader of a
 * pipe; with FILE_NO_WAIT it fails instead, perhaps after a part. */
enum { FILE_SYNC = 1, FILE_NO_WAIT = 2 };
int file_write_through(const char *path, const void *bytes, size_t count, mode_t mode, int ways,
                       struct muster_err *err);

/* Writes all bytes, with as many calls of write as it takes. -1 with errno when not all are
 * written. */
int file_write_bytes(int fd, const void *bytes, size_t count);

/* Does the same, then fsync. -1 with errno when not all is on the disk. */
int file_write_all(int fd, const void *bytes, size_t count);

/* Like mkdir -p. */
int file_mkdir(const char *path, mode_t mode, struct muster_err *err);

/* Like rm -r, but never follows a link or leaves the file system; a missing path is success. */
int file_remove(const char *path, struct muster_err *err);

bool file_exists(const char *path);

/* Sets the error "cannot WHAT PATH: text of errno (errno)" and returns `code`. ENOSPC is reported
 * as a full disk, except with MUSTER_EOS: for mounts and namespaces it means a limit of the
 * kernel. */
int file_fail(struct muster_err *err, int code, const char *what, const char *path);

/* Returns "a/b" from "a" and "b", which the caller frees; NULL when out of memory. */
char *file_join(const char *folder, const char *name);
