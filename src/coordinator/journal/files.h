/* The journal's calls of the file system, one function for each, so that tests can let any of them
 * fail or be the last.
 *
 * Layer: program (coordinator). All return -1 with errno, as the system calls do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct journal_files {
    void *data; /* for the provider of the functions */
    int (*open)(void *data, const char *path, int flags);
    ssize_t (*write)(void *data, int fd, const void *bytes, size_t count, off_t offset);
    int (*truncate)(void *data, int fd, off_t size);
    int (*sync)(void *data, int fd); /* fdatasync */
    int (*rename)(void *data, const char *from, const char *to);
    int (*remove)(void *data, const char *path);
    int (*lock)(void *data, int fd); /* exclusive flock; EWOULDBLOCK: another process has it */
};

/* The functions of the system. */
extern const struct journal_files journal_files_system;

/* Whether the file that is open has this path still. */
bool journal_file_is_at(const char *path, int fd);
