/* Finds the controller, and starts it in the background if there is none.
 *
 * A controller runs if the socket accepts. One that fails to start has written the reason into
 * daemon.log, whose last line becomes the error. Two verbs may each start one at the same moment:
 * only one of them gets the lock, so a child that ends in good order is not a failure, because the
 * other one is about to answer. But the lock may also belong to a controller that is being killed,
 * which holds it a little longer than its socket; so if none answers another one is started.
 */
#include "kube/internal.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/system/error_text.h"
#include "base/system/nofile_limit.h"
#include "base/system/soft_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL_MS = 5, LOSER_MS = 500, STARTS_MAX = 10, LOG_TAIL_BYTES = 4096 };

enum { LOST = 1 }; /* the race, against another controller, which does not answer */

/* Returns a connection; -1: nobody listens. */
static int connect_socket(const struct kube *kube)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", kube->home.socket);
    muster_auto(close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        return -1;
    }
    int connected = fd;
    fd = -1;
    return connected;
}

static bool answers(const struct kube *kube)
{
    muster_auto(close) int fd = connect_socket(kube);
    return fd >= 0;
}

pid_t kube_controller_pid(const struct kube *kube)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    muster_auto(close) int fd = connect_socket(kube);
    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

/* Runs in the child, which gets a session and a log of its own, and none of our descriptors or
 * signal masks. */
static void become_controller(const struct kube *kube, int log_fd)
{
    setsid();
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(log_fd, STDOUT_FILENO);
    dup2(log_fd, STDERR_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    nofile_limit_restore();
    if (setenv("MUSTER_HOME", kube->home.path, 1) == 0 && chdir("/") == 0) {
        execl("/proc/self/exe", "muster", "daemon", (char *)NULL);
    }
    dprintf(STDERR_FILENO, "cannot start the controller: %s%s\n", strerror(errno),
            errno == ENOENT ? " (is /proc mounted?)" : "");
    _exit(71);
}

/* Reads the last line that the controller has written since its log had `start` bytes; "" if there
 * is none. The log may have been rotated meanwhile. */
static void read_complaint(const char *log_path, off_t start, char *ret, size_t size)
{
    struct stat info;
    char tail[LOG_TAIL_BYTES + 1];
    ssize_t got = -1;
    muster_auto(close) int fd = open(log_path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &info) == 0) {
        off_t from = info.st_size < start ? 0 : start;
        from = info.st_size - from > LOG_TAIL_BYTES ? info.st_size - LOG_TAIL_BYTES : from;
        got = pread(fd, tail, LOG_TAIL_BYTES, from);
    }
    tail[got < 0 ? 0 : got] = '\0';
    size_t length = strlen(tail);
    while (length > 0 && tail[length - 1] == '\n') {
        tail[--length] = '\0';
    }
    const char *last = strrchr(tail, '\n');
    last = last ? last + 1 : tail;
    /* A program's own error line names the program; our message does that itself. */
    last += strncmp(last, "muster: ", 8) == 0 ? 8 : 0;
    snprintf(ret, size, "%s", last);
}

/* Makes the error for a controller that ended without a message. A library that cannot start a
 * thread aborts. */
static int say_end(int status, const char *log_path, int code, struct muster_err *err)
{
    const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
    if (name) {
        return muster_fail(
            err, code,
            "the controller was ended by SIG%s before it could start: mostly a limit "
            "of memory or processes is too low for it (ulimit -v, ulimit -u); type "
            "muster up in a shell without it. Its log is %s",
            name, log_path);
    }
    return muster_fail(err, code, "the controller did not start and said nothing; see %s",
                       log_path);
}

static int gave_up(const struct kube *kube, off_t start, const char *log_path, int status,
                   struct muster_err *err)
{
    char why[400];
    read_complaint(log_path, start, why, sizeof why);
    int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    int code = exit_code == muster_code_exit(MUSTER_ECREATE) ? MUSTER_ECREATE : MUSTER_EUNAVAIL;
    struct statvfs disk;
    if (*why) {
        return muster_fail(err, code, "the controller did not start: %s", why);
    }
    if (statvfs(kube->home.path, &disk) == 0 && disk.f_bavail == 0) {
        return muster_fail(err, MUSTER_ECREATE,
                           "the controller did not start: cannot write %s: the disk is full; free "
                           "some space and try again",
                           log_path);
    }
    int limited = soft_limits_check(err); /* the limit of file sizes applies to its log, too */
    return limited < 0 ? limited : say_end(status, log_path, code, err);
}

static bool ended_in_order(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int wait_for(struct kube *kube, pid_t child, off_t start, const char *log_path,
                    struct muster_err *err)
{
    int status = 0;
    bool ended = false;
    for (int64_t waited_ms = 0, limit_ms = KUBE_START_MS; waited_ms < limit_ms;
         waited_ms += POLL_MS) {
        if (answers(kube)) {
            return 0;
        }
        if (!ended && waitpid(child, &status, WNOHANG) == child) {
            ended = true;
            /* Only a controller that lost a race ends with exit code 0. */
            limit_ms = ended_in_order(status) ? waited_ms + LOSER_MS : 0;
        }
        usleep(POLL_MS * 1000);
    }
    if (answers(kube)) {
        return 0;
    }
    return ended && ended_in_order(status) ? LOST : gave_up(kube, start, log_path, status, err);
}

static int start_one(struct kube *kube, struct muster_err *err)
{
    muster_auto(free) char *log_path = home_file(&kube->home, "daemon.log");
    if (!log_path) {
        return err_no_memory(err);
    }
    muster_auto(close) int log_fd = open(log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0) {
        return muster_fail(err, MUSTER_ECREATE, "cannot write %s: %s", log_path, error_text(errno));
    }
    off_t start = lseek(log_fd, 0, SEEK_END);
    pid_t child = fork();
    if (child < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot start a process: %s", error_text_start(errno));
    }
    if (child == 0) {
        become_controller(kube, log_fd);
    }
    return wait_for(kube, child, start, log_path, err);
}

int kube_ensure(struct kube *kube, struct muster_err *err)
{
    if (kube->is_cluster || answers(kube)) {
        return 0;
    }
    if (kube->start == KUBE_RUNNING) {
        return muster_fail(err, MUSTER_EUNAVAIL, "no controller runs in %s (muster up starts one)",
                           kube->home.path);
    }
    int r = LOST;
    for (int tried = 0; tried < STARTS_MAX && r == LOST; tried++) {
        r = start_one(kube, err);
    }
    return r == LOST ? muster_fail(err, MUSTER_EUNAVAIL,
                                   "another controller holds %s/lock and does not answer",
                                   kube->home.path)
                     : r;
}
