/* See guard.h. */
#include "process/supervisor/guard.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/system/error_text.h"
#include "process/machine/descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIFELINE_FD = 3, LOCK_FD = 4 };

/* Closes all descriptors of the supervisor except these two. */
static bool keep_only(int lifeline_fd, int lock_fd)
{
    int lifeline = fcntl(lifeline_fd, F_DUPFD_CLOEXEC, LOCK_FD + 1);
    int lock = fcntl(lock_fd, F_DUPFD_CLOEXEC, LOCK_FD + 1);
    if (lifeline < 0 || lock < 0 || dup2(lifeline, LIFELINE_FD) < 0 || dup2(lock, LOCK_FD) < 0) {
        return false;
    }
    (void)close_range(LOCK_FD + 1, ~0U, 0);
    (void)close_range(0, 2, 0);
    return true;
}

__attribute__((noreturn)) static void be_guard(const char *mark, int lifeline_fd, int lock_fd)
{
    char byte;
    (void)prctl(PR_SET_NAME, "muster-guard");
    (void)setsid();
    (void)!chdir("/");
    if (!keep_only(lifeline_fd, lock_fd)) {
        _exit(1);
    }
    while (read(LIFELINE_FD, &byte, 1) < 0 && errno == EINTR) {
    }
    descendants_sweep(mark);
    _exit(0);
}

int guard_start(struct guard *ret, const char *job_folder, int lock_fd, struct muster_err *err)
{
    int ends[2];
    muster_auto(free) char *mark = NULL;
    if (asprintf(&mark, "MUSTER_ATTEMPT=%s/containers/", job_folder) < 0) {
        mark = NULL;
        return err_no_memory(err);
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot make a socket pair: %s", error_text(errno));
    }
    ret->pid = fork();
    if (ret->pid == 0) {
        close(ends[0]);
        be_guard(mark, ends[1], lock_fd);
    }
    close(ends[1]);
    ret->lifeline_fd = ends[0];
    if (ret->pid < 0) {
        ret->pid = 0;
        close(ends[0]);
        return muster_fail(err, MUSTER_EOS, "cannot start the job's guard: %s",
                           error_text_start(errno));
    }
    return 0;
}

void guard_stop(struct guard *guard)
{
    if (guard->pid > 0) {
        (void)kill(guard->pid, SIGKILL);
        (void)waitpid(guard->pid, NULL, 0);
        close(guard->lifeline_fd);
    }
    *guard = (struct guard){0};
}
