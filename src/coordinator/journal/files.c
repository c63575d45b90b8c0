/* See files.h. */
#include "coordinator/journal/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int system_open(void *data, const char *path, int flags)
{
    (void)data;
    return open(path, flags | O_CLOEXEC, 0600);
}

static ssize_t system_write(void *data, int fd, const void *bytes, size_t count, off_t offset)
{
    (void)data;
    return pwrite(fd, bytes, count, offset);
}

static int system_truncate(void *data, int fd, off_t size)
{
    (void)data;
    return ftruncate(fd, size);
}

static int system_sync(void *data, int fd)
{
    (void)data;
    return fdatasync(fd);
}

static int system_rename(void *data, const char *from, const char *to)
{
    (void)data;
    return rename(from, to);
}

static int system_remove(void *data, const char *path)
{
    (void)data;
    return unlink(path);
}

static int system_lock(void *data, int fd)
{
    (void)data;
    return flock(fd, LOCK_EX | LOCK_NB);
}

bool journal_file_is_at(const char *path, int fd)
{
    struct stat own, found;
    return fstat(fd, &own) == 0 && stat(path, &found) == 0 && own.st_dev == found.st_dev &&
           own.st_ino == found.st_ino;
}

const struct journal_files journal_files_system = {
    .open = system_open,
    .write = system_write,
    .truncate = system_truncate,
    .sync = system_sync,
    .rename = system_rename,
    .remove = system_remove,
    .lock = system_lock,
};
