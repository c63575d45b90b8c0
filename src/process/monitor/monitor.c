/* See monitor.h. */
#include "process/monitor/monitor.h"

#include "base/system/error_text.h"
#include "base/time/clock.h"
#include "process/machine/descendants.h"
#include "process/monitor/execute.h"
#include "process/monitor/inside.h"
#include "process/monitor/mounts.h"
#include "process/monitor/remnants.h"
#include "process/wire/passing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The monitor's own state. */
struct monitor {
    const struct monitor_plan *plan;
    int control_fd;
    int exec_fd; /* end of file: exec has happened, or never will; then -1 */
    int signal_fd;
    pid_t main_pid;
    bool main_ended;
    bool orphaned;    /* the supervisor is gone */
    bool own_proc;    /* /proc shows the numbers of our namespace: descendants can be found */
    bool exec_failed; /* the main process has reported why */
    struct inside inside;
};

static void tell(const struct monitor *m, const struct monitor_message *message)
{
    (void)send(m->control_fd, message, sizeof *message, MSG_NOSIGNAL);
}

static void tell_text(const struct monitor *m, enum monitor_kind kind, int code, const char *text)
{
    struct monitor_message message = {.kind = kind, .code = code};
    (void)snprintf(message.text, sizeof message.text, "%s", text);
    tell(m, &message);
}

/* ---- Setting up ---- */

static void settle_signals(struct monitor *m)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t children;
    (void)sigaction(SIGCHLD, &standard, NULL);
    (void)sigaction(SIGTERM, &ignore, NULL);
    (void)sigaction(SIGINT, &ignore, NULL);
    (void)sigaction(SIGHUP, &ignore, NULL);
    (void)sigaction(SIGPIPE, &ignore, NULL);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &children, NULL);
    m->signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Closes all descriptors of the supervisor except those of the plan: its sockets and loops and the
 * pipes of other containers must not stay open here. */
static void close_others(const struct monitor *m)
{
    const int keep[] = {m->control_fd,         m->plan->log_fd,       m->plan->keep_fd,
                        m->plan->entrances[0], m->plan->entrances[1], m->signal_fd};
    passing_keep_only(keep, sizeof keep / sizeof keep[0]);
}

static int set_up_files(struct monitor *m, struct muster_err *err)
{
    const struct process_spec *spec = m->plan->spec;
    const struct mounts_plan mounts = {.mounts = spec->mounts,
                                       .count = spec->mount_count,
                                       .staging = m->plan->staging,
                                       .new_proc = m->plan->namespaces};
    bool new_proc = false;
    int r = m->plan->namespaces ? mounts_enter(&mounts, &new_proc, err)
                                : mounts_check_plain(&mounts, err);
    m->own_proc = m->inside.own_proc = descendants_visible();
    if (r == 0 && m->plan->namespaces && !new_proc) {
        tell_text(m, MONITOR_NOTE, 0,
                  "/proc cannot be mounted for the job: it shows the machine's process numbers");
    }
    return r;
}

static int start_main(struct monitor *m, struct muster_err *err)
{
    int ends[2];
    int input[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) < 0 || (m->plan->spec->input && pipe2(input, O_CLOEXEC) < 0)) {
        return muster_fail(err, MUSTER_EOS, "cannot make a pipe: %s", error_text(errno));
    }
    m->exec_fd = ends[0];
    m->inside.input_fd = input[1];
    m->main_pid = _Fork(); /* libuv's fork handlers would close our descriptors by number */
    if (m->main_pid == 0) {
        close(ends[0]);
        execute(m->plan, input[0], m->control_fd, ends[1]);
    }
    passing_close(input, 1);
    close(ends[1]);
    close(m->plan->log_fd);
    return m->main_pid < 0
               ? muster_fail(err, MUSTER_EOS, "cannot start a process: %s", error_text_start(errno))
               : 0;
}

/* ---- Watching ---- */

static void kill_all(const struct monitor *m)
{
    if (m->own_proc) {
        remnants_kill(getpid(), m->main_pid);
    } else if (m->main_pid > 0 && !m->main_ended) {
        (void)kill(-m->main_pid, SIGKILL);
    }
}

/* A process that was only just forked may not have a group of its own yet. */
static void send_to_main(const struct monitor *m, int number)
{
    if (kill(-m->main_pid, number) < 0) {
        (void)kill(m->main_pid, number);
    }
}

static void pass_signal(const struct monitor *m, int number)
{
    if (number == SIGKILL) {
        kill_all(m);
        return;
    }
    if (m->main_ended) {
        return;
    }
    send_to_main(m, number);
    if (number == SIGTERM || number == SIGINT) {
        send_to_main(m, SIGCONT); /* a stopped process could not react */
    }
}

static void take_request(struct monitor *m)
{
    struct monitor_request request;
    int fds[PASSING_FDS_MAX];
    size_t count = 0;
    ssize_t n = passing_receive(m->control_fd, &request, sizeof request, fds, &count);
    if (n == 0 || (n < 0 && n != -EINTR && n != -EAGAIN)) {
        m->orphaned = true;
        kill_all(m);
    } else if (n == (ssize_t)sizeof request && request.number > 0) {
        pass_signal(m, request.number);
    } else if (n == (ssize_t)sizeof request) {
        inside_take(&m->inside, &request, fds, count);
    }
}

/* A byte says that exec failed: the main process has sent the reason itself. If it died before exec
 * without a message (it was killed), it counts as having run. */
static void note_exec(struct monitor *m)
{
    char byte;
    ssize_t n = read(m->exec_fd, &byte, 1);
    if (n < 0 && errno == EINTR) {
        return;
    }
    m->exec_failed = n == 1;
    close(m->exec_fd);
    m->exec_fd = -1;
    if (!m->exec_failed) {
        tell_text(m, MONITOR_RUNNING, 0, "");
    }
}

static void note_end(struct monitor *m, int status, const struct rusage *usage)
{
    m->main_ended = true;
    if (m->exec_fd >= 0) {
        note_exec(m);
    }
    if (m->exec_failed) {
        return;
    }
    struct monitor_message message = {
        .kind = MONITOR_EXITED,
        .code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
        .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
        .at_unix_ms = clock_unix_ms(),
        .peak_bytes = usage->ru_maxrss * 1024,
    };
    struct statvfs shm;
    if (message.signal == SIGBUS && statvfs("/dev/shm", &shm) == 0) {
        message.shm_bytes = (int64_t)(shm.f_blocks * shm.f_frsize);
        message.shm_free_bytes = (int64_t)(shm.f_bavail * shm.f_frsize);
    }
    tell(m, &message);
}

/* Returns false when no descendant is left. */
static bool reap(struct monitor *m)
{
    for (;;) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid == m->main_pid && pid > 0) {
            note_end(m, status, &usage);
        }
        if (pid > 0) {
            inside_reaped(&m->inside, pid);
        }
        if (pid <= 0) {
            return pid == 0 || errno != ECHILD;
        }
    }
}

/* Called after the main process has ended. A process that was forked after this loop has looked is
 * found in the next round. */
static void end_the_rest(struct monitor *m)
{
    int64_t patient_until_ms = clock_ms() + REMNANTS_TRACKER_MS;
    while (reap(m)) {
        if (m->own_proc && clock_ms() >= patient_until_ms) {
            (void)descendants_kill(getpid(), SIGKILL);
        } else {
            kill_all(m);
        }
        struct pollfd children = {.fd = m->signal_fd, .events = POLLIN};
        (void)poll(&children, 1, 10);
        struct signalfd_siginfo info;
        (void)!read(m->signal_fd, &info, sizeof info);
        if (!m->own_proc) {
            return; /* what has left the process group ends with the job */
        }
    }
}

static void watch(struct monitor *m)
{
    while (!m->main_ended) {
        struct pollfd ready[] = {{.fd = m->orphaned ? -1 : m->control_fd, .events = POLLIN},
                                 {.fd = m->signal_fd, .events = POLLIN},
                                 {.fd = m->exec_fd, .events = POLLIN}};
        if (poll(ready, 3, m->orphaned ? 10 : -1) < 0) {
            continue;
        }
        if (ready[0].revents) {
            take_request(m);
        }
        if (ready[2].revents) {
            note_exec(m);
        }
        struct signalfd_siginfo info;
        (void)!read(m->signal_fd, &info, sizeof info);
        (void)reap(m);
        if (m->orphaned) {
            kill_all(m);
        }
    }
    end_the_rest(m);
}

__attribute__((noreturn)) static void be_monitor(const struct monitor_plan *plan, int control_fd)
{
    struct monitor m = {.plan = plan,
                        .control_fd = control_fd,
                        .exec_fd = -1,
                        .inside = {.plan = plan, .input_fd = -1}};
    struct muster_err err = MUSTER_ERR_INIT;
    (void)prctl(PR_SET_NAME, "muster-monitor");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)setsid();
    settle_signals(&m);
    close_others(&m);
    int r = set_up_files(&m, &err);
    r = r < 0 ? r : start_main(&m, &err);
    if (r < 0) {
        tell_text(&m, MONITOR_FAILED, 128, err.text);
        _exit(1);
    }
    watch(&m);
    _exit(0);
}

int monitor_start(const struct monitor_plan *plan, pid_t *ret_pid, int *ret_fd,
                  struct muster_err *err)
{
    int ends[2];
    int on = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot make a socket pair: %s", error_text(errno));
    }
    (void)setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    pid_t pid = fork();
    if (pid == 0) {
        be_monitor(plan, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return muster_fail(err, MUSTER_EOS, "cannot start the container's monitor: %s",
                           error_text_start(errno));
    }
    *ret_pid = pid;
    *ret_fd = ends[0];
    return 0;
}
