/* See own_log.h. */
#include "daemon/own_log.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_too_long(const char *path)
{
    struct stat ours, named;
    return fstat(STDERR_FILENO, &ours) == 0 && S_ISREG(ours.st_mode) &&
           ours.st_size > OWN_LOG_BYTES_MAX && stat(path, &named) == 0 &&
           named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

void own_log_bound(const struct home *home)
{
    muster_auto(free) char *path = home_file(home, "daemon.log");
    muster_auto(free) char *old = home_file(home, "daemon.log.old");
    if (!path || !old || !is_too_long(path) || rename(path, old) < 0) {
        return;
    }
    muster_auto(close) int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        (void)rename(old, path); /* it grows on, and is tried again */
        return;
    }
    (void)dup2(fd, STDOUT_FILENO);
    (void)dup2(fd, STDERR_FILENO);
}
