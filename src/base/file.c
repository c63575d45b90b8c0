/* See file.h. */
#include "base/file.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int file_fail(struct muster_err *err, int code, const char *what, const char *path)
{
    bool full = (errno == ENOSPC || errno == EDQUOT) && code != MUSTER_EOS;
    return muster_fail(err, code, "cannot %s %s: %s", what, path,
                       full ? "the disk is full; free some space and try again" : strerror(errno));
}

static int read_all(int fd, const char *path, struct buf *into, struct muster_err *err)
{
    for (;;) {
        char chunk[16384];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return file_fail(err, MUSTER_EIO, "read", path);
        }
        if (n == 0) {
            return 0;
        }
        buf_add(into, chunk, (size_t)n);
        if (buf_failed(into)) {
            return muster_fail(err, MUSTER_ETOOBIG, "%s is larger than %zu bytes", path, into->max);
        }
    }
}

int file_read(const char *path, size_t max_bytes, char **ret_text, size_t *ret_bytes,
              struct muster_err *err)
{
    bool standard_input = strcmp(path, "-") == 0;
    int fd = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return file_fail(err, errno == ENOENT ? MUSTER_ENOENT : MUSTER_EIO, "open", path);
    }
    struct buf bytes;
    buf_init(&bytes, max_bytes);
    int r = read_all(fd, path, &bytes, err);
    if (!standard_input) {
        close(fd);
    }
    if (r < 0) {
        buf_done(&bytes);
        return r;
    }
    size_t used = bytes.used;
    char *text = buf_steal(&bytes);
    if (!text) {
        return muster_fail(err, MUSTER_ENOMEM, "out of memory reading %s", path);
    }
    *ret_text = text;
    if (ret_bytes) {
        *ret_bytes = used;
    }
    return 0;
}

int file_write_bytes(int fd, const void *bytes, size_t count)
{
    for (const char *at = bytes; count > 0;) {
        ssize_t n = write(fd, at, count);
        if (n < 0 && errno != EINTR) {
            return -1;
        }
        if (n > 0) {
            at += n;
            count -= (size_t)n;
        }
    }
    return 0;
}

int file_write_all(int fd, const void *bytes, size_t count)
{
    return file_write_bytes(fd, bytes, count) < 0 ? -1 : fsync(fd);
}

static void sync_folder_of(const char *path)
{
    muster_auto(free) char *folder = strdup(path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) {
        *slash = '\0';
    }
    muster_auto(close) int fd =
        open(slash ? (slash == folder ? "/" : folder) : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); /* not every file system supports it; the rename is already done */
    }
}

static int replace(const char *path, const void *bytes, size_t count, mode_t mode, bool sync,
                   struct muster_err *err)
{
    muster_auto(free) char *temporary = NULL;
    if (asprintf(&temporary, "%s.new.%d", path, (int)getpid()) < 0) {
        temporary = NULL;
        return muster_fail(err, MUSTER_ENOMEM, "out of memory writing %s", path);
    }
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0) {
        return file_fail(err, MUSTER_ECREATE, "create", path);
    }
    bool written = (sync ? file_write_all : file_write_bytes)(fd, bytes, count) == 0;
    int r = written ? 0 : file_fail(err, MUSTER_ECREATE, "write", path);
    if (close(fd) < 0 && r == 0) {
        r = file_fail(err, MUSTER_ECREATE, "write", path);
    }
    if (r == 0 && rename(temporary, path) < 0) {
        r = file_fail(err, MUSTER_ECREATE, "replace", path);
    }
    if (r < 0) {
        (void)unlink(temporary);
        return r;
    }
    if (sync) {
        sync_folder_of(path);
    }
    return 0;
}

int file_write(const char *path, const void *bytes, size_t count, mode_t mode,
               struct muster_err *err)
{
    return replace(path, bytes, count, mode, true, err);
}

int file_put(const char *path, const void *bytes, size_t count, mode_t mode, struct muster_err *err)
{
    return replace(path, bytes, count, mode, false, err);
}

int file_write_through(const char *path, const void *bytes, size_t count, mode_t mode, int ways,
                       struct muster_err *err)
{
    struct stat info;
    if (lstat(path, &info) < 0 || S_ISREG(info.st_mode)) {
        return replace(path, bytes, count, mode, ways & FILE_SYNC, err);
    }
    int no_wait = ways & FILE_NO_WAIT ? O_NONBLOCK : 0;
    muster_auto(close) int fd =
        open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC | no_wait, mode);
    bool is_file = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    if (fd < 0 || (is_file && fchmod(fd, mode) < 0) || file_write_bytes(fd, bytes, count) < 0) {
        return file_fail(err, MUSTER_ECREATE, "write", path);
    }
    return 0;
}

int file_mkdir(const char *path, mode_t mode, struct muster_err *err)
{
    muster_auto(free) char *part = strdup(path);
    if (!part) {
        return err_no_memory(err);
    }
    for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash) {
            *slash = '\0';
        }
        if (mkdir(part, mode) < 0 && errno != EEXIST) {
            return file_fail(err, MUSTER_ECREATE, "make the directory", part);
        }
        if (!slash) {
            break;
        }
        *slash = '/';
    }
    struct stat info;
    if (stat(path, &info) < 0 || !S_ISDIR(info.st_mode)) {
        errno = ENOTDIR;
        return file_fail(err, MUSTER_ECREATE, "make the directory", path);
    }
    return 0;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0; /* another process removed it */
}

int file_remove(const char *path, struct muster_err *err)
{
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT) {
        return file_fail(err, MUSTER_EIO, "remove", path);
    }
    return 0;
}

bool file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

char *file_join(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}
