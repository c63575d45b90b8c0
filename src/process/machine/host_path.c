/* See host_path.h. */
#include "process/machine/host_path.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct host_path_type {
    const char *name;
    mode_t format; /* S_IFDIR …; 0: any format is accepted */
    bool create;
    const char *other; /* the fault to report if the path has another format */
} types[] = {
    {"", 0, false, NULL},
    {"DirectoryOrCreate", S_IFDIR, true, "is not a directory"},
    {"Directory", S_IFDIR, false, "is not a directory"},
    {"FileOrCreate", S_IFREG, true, "is not a file"},
    {"File", S_IFREG, false, "is not a file"},
    {"Socket", S_IFSOCK, false, "is not a socket"},
    {"CharDevice", S_IFCHR, false, "is not a character device"},
    {"BlockDevice", S_IFBLK, false, "is not a block device"},
};

static const struct host_path_type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

static bool parent_exists(const char *path)
{
    muster_auto(free) char *folder = strdup(path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) {
        slash[slash == folder] = '\0';
    }
    return slash && file_exists(folder);
}

/* Missing directories are made at any depth; the directory of a file must exist, as for a
 * kubelet. */
static const char *missing_fault(const struct host_path_type *type, const char *path,
                                 const char **ret_hint)
{
    if (type->create) {
        bool can = type->format == S_IFDIR || parent_exists(path);
        return can ? NULL : "is in a directory that does not exist on this machine";
    }
    if (type->format == S_IFREG) {
        *ret_hint = "make the file, or correct the path";
    } else if (type->format == 0 || type->format == S_IFDIR) {
        *ret_hint = "type: DirectoryOrCreate makes the directory";
    }
    return "does not exist on this machine";
}

const char *host_path_fault(const char *path, const char *type_name, const char **ret_hint)
{
    const struct host_path_type *type = find_type(type_name);
    struct stat info;
    *ret_hint = NULL;
    if (!type) {
        *ret_hint = "DirectoryOrCreate, Directory, FileOrCreate, File, Socket, CharDevice, "
                    "BlockDevice, or no type";
        return "has an unknown type";
    }
    if (stat(path, &info) < 0) {
        bool absent = errno == ENOENT || errno == ENOTDIR;
        return absent ? missing_fault(type, path, ret_hint) : "cannot be looked at by this user";
    }
    return type->format == 0 || (info.st_mode & S_IFMT) == type->format ? NULL : type->other;
}

static int make_file(const char *path, struct muster_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        return file_fail(err, MUSTER_ECREATE, "make the file", path);
    }
    close(fd);
    return 0;
}

int host_path_prepare(const char *path, const char *type_name, struct muster_err *err)
{
    const char *hint = NULL;
    const char *fault = host_path_fault(path, type_name, &hint);
    if (fault) {
        return muster_fail(err, MUSTER_ENOENT, "hostPath %s %s%s%s", path, fault, hint ? "; " : "",
                           hint ? hint : "");
    }
    const struct host_path_type *type = find_type(type_name);
    if (!type->create) {
        return 0;
    }
    return type->format == S_IFDIR ? file_mkdir(path, 0755, err) : make_file(path, err);
}
