/* See log_file.h. */
#include "base/log_file.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static int open_to_append(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

int log_file_open(const char *folder, const char *name, off_t bytes_max)
{
    muster_auto(free) char *path = file_join(folder, name);
    muster_auto(free) char *old = NULL;
    struct stat is;
    if (!path || asprintf(&old, "%s.old", path) < 0) {
        old = NULL;
        errno = ENOMEM;
        return -1;
    }
    bool aside = stat(path, &is) == 0 && is.st_size > bytes_max && rename(path, old) == 0;
    int fd = open_to_append(path);
    if (fd < 0 && aside && rename(old, path) == 0) { /* it grows on; the next open tries again */
        fd = open_to_append(path);
    }
    return fd;
}
