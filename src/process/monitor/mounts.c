/* See mounts.h. Sources are cloned (open_tree(2)) before anything is covered or the root changes,
 * and moved into place at the end. */
#include "process/monitor/mounts.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "process/monitor/overlay.h"
#include "process/monitor/sub_path.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum {
    MOUNTS_MAX = PROCESS_MOUNTS_MAX + PROCESS_OWN_MOUNTS_MAX,
};

/* The state while the view is built. */
struct view {
    const struct mounts_plan *plan;
    int sources[MOUNTS_MAX];       /* detached mounts; -1: not open */
    struct covers covers;          /* tmpfs that we have mounted: names may be made in them */
    const char *bound[MOUNTS_MAX]; /* the mountPaths that are mounted already */
    size_t bound_count;
};

/* ---- Sources ---- */

static int open_source(const struct process_mount *mount, int *ret, struct muster_err *err)
{
    int at = AT_FDCWD;
    const char *path = mount->host_path;
    if (mount->sub_path[0]) {
        int r = sub_path_open(mount, &at, err);
        if (r < 0) {
            return r;
        }
        path = "";
    }
    int fd = open_tree(
        at, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | (*path ? 0 : AT_EMPTY_PATH));
    int saved = errno;
    if (at >= 0) {
        close(at);
    }
    if (fd < 0) {
        return muster_fail(err, MUSTER_ENOENT, "volume %s: cannot open %s: %s", mount->name,
                           *path ? path : mount->sub_path, strerror(saved));
    }
    *ret = fd;
    return 0;
}

static int open_sources(struct view *view, struct muster_err *err)
{
    int r = 0;
    assert(view->plan->count <= MOUNTS_MAX);
    for (size_t i = 0; i < view->plan->count && r == 0; i++) {
        r = open_source(&view->plan->mounts[i], &view->sources[i], err);
    }
    return r;
}

static void close_sources(struct view *view)
{
    for (size_t i = 0; i < MOUNTS_MAX; i++) {
        if (view->sources[i] >= 0) {
            close(view->sources[i]);
        }
    }
}

/* A remount must repeat the flags that the mount has: in a user namespace it may not drop them. */
static int make_read_only(const char *target, struct muster_err *err)
{
    struct statvfs info;
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY;
    if (statvfs(target, &info) == 0) {
        flags |= (info.f_flag & ST_NOSUID) ? MS_NOSUID : 0;
        flags |= (info.f_flag & ST_NODEV) ? MS_NODEV : 0;
        flags |= (info.f_flag & ST_NOEXEC) ? MS_NOEXEC : 0;
        flags |= (info.f_flag & ST_NOATIME) ? MS_NOATIME : 0;
        flags |= (info.f_flag & ST_RELATIME) ? MS_RELATIME : 0;
    }
    return mount(NULL, target, NULL, flags, NULL) < 0
               ? file_fail(err, MUSTER_EOS, "make read-only", target)
               : 0;
}

/* ---- Targets ---- */

static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* Whether names may be made there: in a tmpfs of ours, or in a volume of the container (as
 * container runtimes do for a mount within a mount). */
static bool may_make_in(const struct view *view, const char *folder)
{
    for (size_t i = 0; i < view->bound_count; i++) {
        if (is_below(folder, view->bound[i])) {
            return true;
        }
    }
    return covers_hold(&view->covers, folder);
}

/* Returns the nearest existing folder above `path`; the caller frees. */
static char *nearest_folder(const char *path)
{
    char *folder = strdup(path);
    while (folder && !file_exists(folder)) {
        char *slash = strrchr(folder, '/');
        assert(slash);
        slash[slash == folder] = '\0';
    }
    return folder;
}

/* A mountPath that is a new name in / needs a new root. This is made before the sources are opened:
 * a source that was opened in the old root cannot be bound when that root is gone. */
static int overlay_root_if_needed(struct view *view, struct muster_err *err)
{
    for (size_t i = 0; i < view->plan->count; i++) {
        muster_auto(free) char *nearest = nearest_folder(view->plan->mounts[i].mount_path);
        if (!nearest) {
            return err_no_memory(err);
        }
        if (strcmp(nearest, "/") == 0) {
            return overlay_root(&view->covers, view->plan->staging, err);
        }
    }
    return 0;
}

static int make_target(struct view *view, const char *target, bool is_folder,
                       struct muster_err *err)
{
    muster_auto(free) char *nearest = nearest_folder(target);
    if (!nearest) {
        return err_no_memory(err);
    }
    int r = may_make_in(view, nearest) ? 0 : overlay_folder(&view->covers, nearest, err);
    muster_auto(free) char *parent = strdup(target);
    char *slash = parent ? strrchr(parent, '/') : NULL;
    if (slash && slash != parent && r == 0) {
        *slash = '\0';
        r = file_mkdir(parent, 0755, err);
    }
    if (r < 0 || is_folder) {
        return r < 0 ? r : file_mkdir(target, 0755, err);
    }
    int fd = open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        return file_fail(err, MUSTER_EOS, "make the file", target);
    }
    close(fd);
    return 0;
}

static int mount_volume(struct view *view, size_t index, struct muster_err *err)
{
    const struct process_mount *volume = &view->plan->mounts[index];
    struct stat source, target;
    if (fstat(view->sources[index], &source) < 0) {
        return file_fail(err, MUSTER_EOS, "look at", volume->host_path);
    }
    bool is_folder = S_ISDIR(source.st_mode);
    int r = 0;
    if (stat(volume->mount_path, &target) < 0) {
        r = make_target(view, volume->mount_path, is_folder, err);
    } else if (S_ISDIR(target.st_mode) != is_folder) {
        r = muster_fail(err, MUSTER_EOS, "mountPath %s is a %s, but %s is a %s", volume->mount_path,
                        is_folder ? "file" : "folder", volume->host_path,
                        is_folder ? "folder" : "file");
    }
    if (r == 0 && move_mount(view->sources[index], "", AT_FDCWD, volume->mount_path,
                             MOVE_MOUNT_F_EMPTY_PATH) < 0) {
        r = file_fail(err, MUSTER_EOS, "mount onto", volume->mount_path);
    }
    if (r == 0 && volume->read_only) {
        r = make_read_only(volume->mount_path, err);
    }
    view->bound[view->bound_count++] = volume->mount_path;
    return r < 0 ? muster_wrap(err, "volume %s", volume->name) : 0;
}

/* Mounts outer volumes first, as they would hide the inner ones. */
static int mount_volumes(struct view *view, struct muster_err *err)
{
    bool done[MOUNTS_MAX] = {false};
    int r = 0;
    for (size_t round = 0; round < view->plan->count && r == 0; round++) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < view->plan->count; i++) {
            const struct process_mount *mounts = view->plan->mounts;
            if (!done[i] && (best == SIZE_MAX ||
                             strlen(mounts[i].mount_path) < strlen(mounts[best].mount_path))) {
                best = i;
            }
        }
        done[best] = true;
        r = mount_volume(view, best, err);
    }
    return r;
}

int mounts_enter(const struct mounts_plan *plan, bool *ret_proc, struct muster_err *err)
{
    struct view view = {.plan = plan};
    for (size_t i = 0; i < MOUNTS_MAX; i++) {
        view.sources[i] = -1;
    }
    if (unshare(CLONE_NEWNS) < 0) {
        return file_fail(err, MUSTER_EOS, "make a mount namespace for", "the container");
    }
    int r = overlay_detach(plan->staging, err);
    *ret_proc = r == 0 && plan->new_proc &&
                mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
    r = r < 0 ? r : overlay_root_if_needed(&view, err);
    r = r < 0 ? r : open_sources(&view, err);
    r = r < 0 ? r : mount_volumes(&view, err);
    close_sources(&view);
    return r;
}

int mounts_check_plain(const struct mounts_plan *plan, struct muster_err *err)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct process_mount *volume = &plan->mounts[i];
        if (volume->sub_path[0] || volume->read_only ||
            strcmp(volume->host_path, volume->mount_path) != 0) {
            return muster_fail(
                err, MUSTER_EUNSUPPORTED,
                "volume %s cannot be mounted at %s: this machine permits you no mount "
                "namespace; run as root, or permit unprivileged user namespaces",
                volume->name, volume->mount_path);
        }
    }
    return 0;
}
