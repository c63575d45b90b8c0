/* See unpack.h. */
#include "cli/copy/unpack.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OWN_FOLDER = 0700 };

void unpack_init(struct unpack *unpack, const char *to)
{
    *unpack = (struct unpack){.to = to, .folder = -1, .file = -1, .parent = -1};
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

static void forget_file(struct unpack *u)
{
    close_fd(&u->file);
    close_fd(&u->parent);
    free(u->path);
    free(u->leaf);
    u->path = u->leaf = NULL;
}

void unpack_done(struct unpack *unpack)
{
    struct stat there;
    if (unpack->file >= 0 && fstat(unpack->file, &there) == 0 && S_ISREG(there.st_mode)) {
        (void)unlinkat(unpack->parent, unpack->leaf, 0); /* a torn file would look complete */
    }
    forget_file(unpack);
    close_fd(&unpack->folder);
}

static int cannot_write(struct muster_err *err, const char *path)
{
    return errno == ELOOP || errno == ENOTDIR
               ? muster_fail(err, MUSTER_ECREATE,
                             "cannot write %s: something else lies there, which is not replaced",
                             path)
               : file_fail(err, MUSTER_ECREATE, "write", path);
}

static bool is_plain(const char *name, size_t length)
{
    return length > 0 && !(length == 1 && name[0] == '.') &&
           !(length == 2 && name[0] == '.' && name[1] == '.');
}

static int refuse_name(const char *name, struct muster_err *err)
{
    return muster_fail(err, MUSTER_EPROTO, "the archive has an entry with an invalid name, %.200s",
                       name);
}

/* The part of a name after the root's name: "" for the root, "a/b" below it; NULL if it is neither.
 */
static const char *below_root(const char *name)
{
    static const char root[] = "x";
    size_t length = sizeof root - 1;
    if (strncmp(name, root, length) != 0) {
        return NULL;
    }
    return name[length] == '\0' ? name + length : name[length] == '/' ? name + length + 1 : NULL;
}

/* Opens the folder that holds the last name of `below`, without following any link. */
static int open_parent(struct unpack *u, const char *below, const char **ret_leaf,
                       struct muster_err *err)
{
    const char *at = below;
    muster_auto(close) int folder = fcntl(u->folder, F_DUPFD_CLOEXEC, 0);
    for (const char *slash; folder >= 0 && (slash = strchr(at, '/')); at = slash + 1) {
        muster_auto(free) char *part = strndup(at, (size_t)(slash - at));
        if (!part || !is_plain(part, strlen(part))) {
            return part ? refuse_name(below, err) : err_no_memory(err);
        }
        int next = openat(folder, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(folder);
        folder = next;
    }
    if (folder < 0) {
        return cannot_write(err, u->path);
    }
    if (!is_plain(at, strlen(at))) {
        return refuse_name(below, err);
    }
    *ret_leaf = at;
    u->parent = folder;
    folder = -1;
    return 0;
}

/* Opens the folder that holds the destination; links in its path are followed. */
static int open_own_parent(struct unpack *u, const char **ret_leaf, struct muster_err *err)
{
    const char *slash = strrchr(u->to, '/');
    muster_auto(free) char *folder =
        slash ? strndup(u->to, slash == u->to ? 1 : (size_t)(slash - u->to)) : strdup(".");
    if (!folder) {
        return err_no_memory(err);
    }
    u->parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret_leaf = slash ? slash + 1 : u->to;
    return u->parent >= 0 ? 0 : cannot_write(err, u->to);
}

static int make_root_folder(struct unpack *u, struct muster_err *err)
{
    int r = file_mkdir(u->to, 0777, err);
    if (r == 0) {
        u->folder = open(u->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return r < 0 || u->folder >= 0 ? r : cannot_write(err, u->to);
}

static int make_folder(struct unpack *u, const char *leaf, unsigned mode, struct muster_err *err)
{
    struct stat info;
    if (mkdirat(u->parent, leaf, mode | OWN_FOLDER) == 0) {
        return 0;
    }
    bool there = errno == EEXIST && fstatat(u->parent, leaf, &info, AT_SYMLINK_NOFOLLOW) == 0;
    errno = there && !S_ISDIR(info.st_mode) ? ENOTDIR : errno;
    return there && S_ISDIR(info.st_mode) ? 0 : cannot_write(err, u->path);
}

static int make_link(struct unpack *u, const char *leaf, const char *target, struct muster_err *err)
{
    struct stat info;
    if (fstatat(u->parent, leaf, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode)) {
        (void)unlinkat(u->parent, leaf, 0);
    }
    return symlinkat(target, u->parent, leaf) == 0 ? 0 : cannot_write(err, u->path);
}

static int begin_file(struct unpack *u, const char *leaf, const struct tar_entry *entry,
                      bool is_root, struct muster_err *err)
{
    int follow = is_root ? 0 : O_NOFOLLOW; /* a link at the destination is followed, as by cp */
    u->leaf = strdup(leaf);
    if (!u->leaf) {
        return err_no_memory(err);
    }
    u->file = openat(u->parent, leaf,
                     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | follow, entry->mode);
    u->changed_unix_s = entry->changed_unix_s;
    if (u->file < 0) {
        return cannot_write(err, u->path);
    }
    /* Opening a pipe without a reader must not block; writing to a full one may. */
    return fcntl(u->file, F_SETFL, 0) == 0 ? 0 : cannot_write(err, u->path);
}

static int make(struct unpack *u, const struct tar_entry *entry, const char *below,
                struct muster_err *err)
{
    bool is_root = !*below;
    const char *leaf = NULL;
    if (is_root && entry->kind == TAR_FOLDER) {
        return make_root_folder(u, err);
    }
    int r = is_root ? open_own_parent(u, &leaf, err) : open_parent(u, below, &leaf, err);
    if (r < 0) {
        return r;
    }
    switch (entry->kind) {
    case TAR_FOLDER: return make_folder(u, leaf, entry->mode, err);
    case TAR_LINK: return make_link(u, leaf, entry->target, err);
    case TAR_FILE: return begin_file(u, leaf, entry, is_root, err);
    }
    return 0;
}

static int on_entry(void *context, const struct tar_entry *entry, struct muster_err *err)
{
    struct unpack *u = context;
    const char *below = below_root(entry->name);
    assert(u->file < 0);
    forget_file(u);
    if (!below || u->has_root == !*below || (*below && u->folder < 0)) {
        return refuse_name(entry->name, err);
    }
    u->has_root = true;
    u->path = *below ? file_join(u->to, below) : strdup(u->to);
    return u->path ? make(u, entry, below, err) : err_no_memory(err);
}

static int on_data(void *context, const char *bytes, size_t count, struct muster_err *err)
{
    struct unpack *u = context;
    while (count > 0) {
        ssize_t written = write(u->file, bytes, count);
        if (written < 0 && errno != EINTR) {
            return cannot_write(err, u->path);
        }
        bytes += written > 0 ? written : 0;
        count -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static int on_end(void *context, struct muster_err *err)
{
    struct unpack *u = context;
    const struct timespec changed = {.tv_sec = u->changed_unix_s};
    const struct timespec times[2] = {changed, changed};
    (void)futimens(u->file, times);
    int r = close(u->file) == 0 ? 0 : cannot_write(err, u->path);
    u->file = -1;
    forget_file(u);
    return r;
}

struct tar_events unpack_events(struct unpack *unpack)
{
    return (struct tar_events){on_entry, on_data, on_end, unpack};
}
