/* See copy.h. */
#include "cli/pod/copy.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 100, CHUNK_BYTES = 8 << 20, BUFFER_BYTES = 1 << 16 };

static int copy_any(const char *from, const char *to, int depth, struct muster_err *err);

static ssize_t read_and_write(int out, int in)
{
    char buffer[BUFFER_BYTES];
    ssize_t count = read(in, buffer, sizeof buffer);
    return count > 0 && file_write_bytes(out, buffer, (size_t)count) < 0 ? -1 : count;
}

/* Copies a chunk, in the kernel if it can. EINVAL: sendfile cannot copy to this device or from this
 * file, and has read nothing. */
static ssize_t copy_chunk(int out, int in)
{
    ssize_t count = sendfile(out, in, NULL, CHUNK_BYTES);
    return count < 0 && errno == EINVAL ? read_and_write(out, in) : count;
}

static int copy_bytes(int in, int out, const char *from, const char *to, struct muster_err *err)
{
    for (;;) {
        ssize_t count = copy_chunk(out, in);
        if (count == 0) {
            return 0;
        }
        if (count < 0 && errno != EINTR) {
            return muster_fail(err, MUSTER_EIO, "cannot copy %s to %s: %s", from, to,
                               strerror(errno));
        }
    }
}

static int open_input(const char *from, struct muster_err *err)
{
    int fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 ? fd
                   : muster_fail(err, errno == ENOENT ? MUSTER_ENOENT : MUSTER_EIO,
                                 "cannot read %s: %s", from, strerror(errno));
}

static int copy_file(const char *from, const char *to, const struct stat *info,
                     struct muster_err *err)
{
    muster_auto(close) int in = open_input(from, err);
    if (in < 0) {
        return in;
    }
    muster_auto(close) int out =
        open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, info->st_mode & 0777);
    if (out < 0) {
        return muster_fail(err, MUSTER_ECREATE, "cannot write %s: %s", to, strerror(errno));
    }
    struct stat there;
    int r = copy_bytes(in, out, from, to, err);
    if (r < 0 && fstat(out, &there) == 0 && S_ISREG(there.st_mode)) {
        (void)unlink(to); /* a torn file would look like a whole one */
    }
    if (r < 0) {
        return r;
    }
    struct timespec times[2] = {info->st_atim, info->st_mtim};
    futimens(out, times);
    return r;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Checks that nothing is copied over itself, and that no device or pipe is replaced: a file that is
 * opened for writing loses its bytes, and a link takes the place of what exists there. */
static int check_other(const char *from, const char *to, const struct stat *info,
                       struct muster_err *err)
{
    struct stat there;
    bool is_link = S_ISLNK(info->st_mode);
    if ((is_link ? lstat(to, &there) : stat(to, &there)) < 0) {
        return 0;
    }
    if (is_same(info, &there)) {
        return muster_fail(err, MUSTER_EINVAL, "%s and %s are the same file", from, to);
    }
    return !is_link || S_ISREG(there.st_mode) || S_ISLNK(there.st_mode)
               ? 0
               : muster_fail(err, MUSTER_ECREATE,
                             "cannot write %s: something else lies there, which is not replaced",
                             to);
}

static int copy_link(const char *from, const char *to, struct muster_err *err)
{
    char target[PATH_MAX];
    ssize_t length = readlink(from, target, sizeof target - 1);
    if (length < 0) {
        return muster_fail(err, MUSTER_EIO, "cannot read %s: %s", from, strerror(errno));
    }
    target[length] = '\0';
    if (unlink(to) < 0 && errno != ENOENT) {
        return muster_fail(err, MUSTER_ECREATE, "cannot write %s: %s", to, strerror(errno));
    }
    return symlink(target, to) == 0
               ? 0
               : muster_fail(err, MUSTER_ECREATE, "cannot write %s: %s", to, strerror(errno));
}

static int copy_entry(const char *from, const char *to, const char *name, int depth,
                      struct muster_err *err)
{
    muster_auto(free) char *inner_from = file_join(from, name);
    muster_auto(free) char *inner_to = file_join(to, name);
    return inner_from && inner_to ? copy_any(inner_from, inner_to, depth + 1, err)
                                  : err_no_memory(err);
}

static int copy_folder(const char *from, const char *to, int depth, struct muster_err *err)
{
    if (depth > DEPTH_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "%s is nested too deep", from);
    }
    int r = file_mkdir(to, 0777, err);
    DIR *folder = r < 0 ? NULL : opendir(from);
    if (!folder) {
        return r < 0 ? r
                     : muster_fail(err, MUSTER_EIO, "cannot read %s: %s", from, strerror(errno));
    }
    for (const struct dirent *e; r == 0 && (e = readdir(folder));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            r = copy_entry(from, to, e->d_name, depth, err);
        }
    }
    closedir(folder);
    return r;
}

static int copy_any(const char *from, const char *to, int depth, struct muster_err *err)
{
    struct stat info;
    if (lstat(from, &info) < 0) {
        return muster_fail(err, errno == ENOENT ? MUSTER_ENOENT : MUSTER_EIO, "cannot read %s: %s",
                           from, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        return copy_folder(from, to, depth, err);
    }
    int r = check_other(from, to, &info, err);
    if (r == 0 && S_ISLNK(info.st_mode)) {
        return copy_link(from, to, err);
    }
    return r == 0 && S_ISREG(info.st_mode) ? copy_file(from, to, &info, err) : r;
}

static void cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash) {
        memcpy(path, ".", sizeof ".");
    } else {
        slash[slash == path] = '\0';
    }
}

/* Finds the part of `path` that exists: all of it, or the nearest folder above; "" if there is
 * none. */
static void find_existing(const char *path, char ret[PATH_MAX])
{
    char left[PATH_MAX];
    snprintf(left, sizeof left, "%s", path);
    while (!realpath(left, ret)) {
        if (errno != ENOENT || strcmp(left, ".") == 0) {
            *ret = '\0';
            return;
        }
        cut_last(left);
    }
}

/* Whether `path` is this folder or lies in it. */
static bool is_within(const struct stat *folder, const char *path)
{
    char at[PATH_MAX];
    struct stat info;
    for (find_existing(path, at); *at; cut_last(at)) {
        if (stat(at, &info) == 0 && is_same(&info, folder)) {
            return true;
        }
        if (strcmp(at, "/") == 0) {
            return false;
        }
    }
    return false;
}

int copy_tree(const char *from, const char *to, struct muster_err *err)
{
    struct stat info;
    if (lstat(from, &info) == 0 && S_ISDIR(info.st_mode) && is_within(&info, to)) {
        return muster_fail(err, MUSTER_EINVAL, "%s cannot be copied into itself, to %s", from, to);
    }
    return copy_any(from, to, 0, err);
}

int copy_append(const char *from, const char *to, struct muster_err *err)
{
    muster_auto(close) int in = open_input(from, err);
    if (in < 0) {
        return in;
    }
    muster_auto(close) int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (out < 0 || lseek(out, 0, SEEK_END) < 0) {
        return muster_fail(err, MUSTER_ECREATE, "cannot write %s: %s", to, strerror(errno));
    }
    return copy_bytes(in, out, from, to, err);
}
