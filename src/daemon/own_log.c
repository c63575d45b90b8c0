/* See own_log.h. */
#include "daemon/own_log.h"

#include "base/cleanup.h"
#include "base/log_file.h"

#include <stdbool.h>
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
    if (!path || !is_too_long(path)) {
        return;
    }
    muster_auto(close) int fd = log_file_open(home->path, "daemon.log", OWN_LOG_BYTES_MAX);
    if (fd >= 0) {
        (void)dup2(fd, STDOUT_FILENO);
        (void)dup2(fd, STDERR_FILENO);
    }
}
