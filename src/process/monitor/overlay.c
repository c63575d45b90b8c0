/* See overlay.h. What is there is cloned (open_tree(2)) into the tmpfs, entry by entry. */
#include "process/monitor/overlay.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES_MAX = 4096 };

/* ---- One folder ---- */

static int make_placeholder(int from, const char *name, const char *target, bool *ret_bind,
                            struct muster_err *err)
{
    struct stat info;
    char link[PATH_MAX];
    *ret_bind = true;
    if (fstatat(from, name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
        *ret_bind = false; /* it was removed meanwhile */
        return 0;
    }
    if (S_ISLNK(info.st_mode)) {
        ssize_t length = readlinkat(from, name, link, sizeof link - 1);
        link[length < 0 ? 0 : length] = '\0';
        *ret_bind = false;
        return symlink(link, target) < 0 ? file_fail(err, MUSTER_EOS, "make the link", target) : 0;
    }
    if (S_ISDIR(info.st_mode)) {
        return mkdir(target, 0755) < 0 ? file_fail(err, MUSTER_EOS, "make the folder", target) : 0;
    }
    int fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) {
        return file_fail(err, MUSTER_EOS, "make the file", target);
    }
    close(fd);
    return 0;
}

static int copy_entry(int from, const char *name, const char *onto, struct muster_err *err)
{
    muster_auto(free) char *target = file_join(onto, name);
    bool bind = false;
    if (!target) {
        return err_no_memory(err);
    }
    int r = make_placeholder(from, name, target, &bind, err);
    if (r < 0 || !bind) {
        return r;
    }
    /* An entry that may not be opened (another's mount) is left out: its name stays, empty. */
    muster_auto(close) int tree =
        open_tree(from, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree >= 0) {
        (void)move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH);
    }
    return 0;
}

/* Fills the tmpfs at `onto` with the entries of the folder `from`. */
static int copy_entries(int from, const char *onto, struct muster_err *err)
{
    int again = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again >= 0 ? fdopendir(again) : NULL;
    if (!entries) {
        return file_fail(err, MUSTER_EOS, "read the folder beside", onto);
    }
    int r = 0;
    size_t count = 0;
    for (struct dirent *e = readdir(entries); e && r == 0; e = readdir(entries)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        r = ++count > ENTRIES_MAX
                ? muster_fail(err, MUSTER_ETOOBIG, "over %d entries beside the mountPath in %s",
                              ENTRIES_MAX, onto)
                : copy_entry(from, e->d_name, onto, err);
    }
    closedir(entries);
    return r;
}

static int note_cover(struct covers *covers, const char *folder, struct muster_err *err)
{
    struct stat info;
    if (covers->count == COVERS_MAX || stat(folder, &info) < 0) {
        return file_fail(err, MUSTER_EOS, "look at", folder);
    }
    covers->devices[covers->count++] = info.st_dev;
    return 0;
}

static int mount_cover(struct covers *covers, const char *onto, mode_t mode, struct muster_err *err)
{
    char options[32];
    (void)snprintf(options, sizeof options, "mode=%o", (unsigned)(mode & 07777));
    if (mount("muster", onto, "tmpfs", MS_NODEV, options) < 0) {
        return file_fail(err, MUSTER_EOS, "mount a tmpfs over", onto);
    }
    return note_cover(covers, onto, err);
}

int overlay_folder(struct covers *covers, const char *folder, struct muster_err *err)
{
    struct stat info;
    muster_auto(close) int from = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (from < 0 || fstat(from, &info) < 0) {
        return file_fail(err, MUSTER_EOS, "open", folder);
    }
    int r = mount_cover(covers, folder, info.st_mode, err);
    return r < 0 ? r : copy_entries(from, folder, err);
}

bool covers_hold(const struct covers *covers, const char *folder)
{
    struct stat info;
    bool known = stat(folder, &info) == 0;
    for (size_t i = 0; known && i < covers->count; i++) {
        if (info.st_dev == covers->devices[i]) {
            return true;
        }
    }
    return false;
}

/* ---- A new root ---- */

/* pivot_root(2) is refused in a chroot and on an initramfs; there chroot is used. */
static int change_root(const char *to, struct muster_err *err)
{
    if (chdir(to) < 0) {
        return file_fail(err, MUSTER_EOS, "enter", to);
    }
    if (syscall(SYS_pivot_root, ".", ".") == 0) {
        (void)umount2(".", MNT_DETACH);
    } else if (chroot(".") < 0) {
        return file_fail(err, MUSTER_EOS, "make a root of", to);
    }
    return chdir("/") < 0 ? file_fail(err, MUSTER_EOS, "enter", "/") : 0;
}

int overlay_root(struct covers *covers, const char *staging, struct muster_err *err)
{
    muster_auto(close) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        return file_fail(err, MUSTER_EOS, "open", "/");
    }
    int r = mount_cover(covers, staging, 0755, err);
    r = r < 0 ? r : copy_entries(root, staging, err);
    return r < 0 ? r : change_root(staging, err);
}

/* The machine's mounts appear here; ours do not appear there. In a chroot "/" is not a mount point:
 * it is made one. */
int overlay_detach(const char *staging, struct muster_err *err)
{
    if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) == 0) {
        return 0;
    }
    if (errno != EINVAL || mount("/", staging, NULL, MS_BIND | MS_REC, NULL) < 0 ||
        mount(NULL, staging, NULL, MS_SLAVE | MS_REC, NULL) < 0) {
        return file_fail(err, MUSTER_EOS, "keep mounts away from", "/");
    }
    return change_root(staging, err);
}
