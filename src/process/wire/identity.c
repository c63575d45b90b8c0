/* See identity.h. */
#include "process/wire/identity.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/system/process_stat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

void identity_boot(char ret[IDENTITY_BYTES_MAX])
{
    muster_auto(free) char *text = NULL;
    ret[0] = '\0';
    if (file_read("/proc/sys/kernel/random/boot_id", IDENTITY_BYTES_MAX, &text, NULL, NULL) == 0) {
        text[strcspn(text, "\n")] = '\0';
        (void)snprintf(ret, IDENTITY_BYTES_MAX, "%s", text);
    }
}

bool identity_of(pid_t pid, char ret[IDENTITY_BYTES_MAX])
{
    char boot[IDENTITY_BYTES_MAX];
    struct process_stat is;
    if (!process_stat_read(pid, &is) || is.state == 'Z' || is.state == 'X') {
        return false;
    }
    identity_boot(boot);
    (void)snprintf(ret, IDENTITY_BYTES_MAX, "%d-%" PRIu64 "-%.40s", (int)pid, is.start_ticks, boot);
    return true;
}

/* The pidfd is taken first, so that it refers to the process whose identity is compared. */
int identity_open(const char *identity, int *ret_fd, struct muster_err *err)
{
    int pid;
    char now[IDENTITY_BYTES_MAX];
    if (sscanf(identity, "%d-", &pid) != 1 || pid <= 0) {
        return muster_fail(err, MUSTER_EDATA, "\"%s\" is not a process identity", identity);
    }
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 || !identity_of(pid, now) || strcmp(now, identity) != 0) {
        if (fd >= 0) {
            close(fd);
        }
        return muster_fail(err, MUSTER_ENOENT, "process %s has ended", identity);
    }
    *ret_fd = fd;
    return 0;
}

char *identity_text(int64_t pid)
{
    char text[IDENTITY_BYTES_MAX];
    return identity_of((pid_t)pid, text) ? strdup(text) : NULL;
}
