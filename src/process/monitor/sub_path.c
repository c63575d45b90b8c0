/* See sub_path.h. */
#include "process/monitor/sub_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_inside(int root, const char *path)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* Opens `path`, whose parent is `parent`, and makes it if it is missing; returns -1 with errno. */
static int open_or_make(int root, int parent, const char *path)
{
    const char *slash = strrchr(path, '/');
    int fd = open_inside(root, path);
    if (fd >= 0 || errno != ENOENT) {
        return fd;
    }
    if (mkdirat(parent, slash ? slash + 1 : path, 0755) < 0 && errno != EEXIST) {
        return -1;
    }
    return open_inside(root, path);
}

/* Opens each part of `path` in turn, from the first; returns the last, or -1 with errno. */
static int walk(int root, char *path)
{
    int fd = open_inside(root, ".");
    for (char *end = path; fd >= 0 && *end;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char after = *end;
        *end = '\0';
        int next = open_or_make(root, fd, path);
        int saved = errno;
        close(fd);
        errno = saved;
        fd = next;
        *end = after;
        end += strspn(end, "/");
    }
    return fd;
}

int sub_path_open(const struct process_mount *mount, int *ret_fd, struct muster_err *err)
{
    char path[PATH_MAX];
    if (strlen(mount->sub_path) >= sizeof path) {
        return muster_fail(err, MUSTER_ENOENT, "volume %s: subPath is too long", mount->name);
    }
    memcpy(path, mount->sub_path, strlen(mount->sub_path) + 1);
    int root = open(mount->host_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0 ? -1 : walk(root, path);
    int saved = errno;
    if (root >= 0) {
        close(root);
    }
    if (fd < 0) {
        return muster_fail(err, MUSTER_ENOENT, "volume %s: subPath %s cannot be opened in %s: %s",
                           mount->name, mount->sub_path, mount->host_path, strerror(saved));
    }
    *ret_fd = fd;
    return 0;
}
