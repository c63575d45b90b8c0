/* See watch.h. */
#include "coordinator/server/watch.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/system/cgroup_path.h"
#include "base/system/process_stat.h"
#include "core/pid_space.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CGROUP_BYTES_MAX = 16384, FROM_A_SIGNAL = 128 };

struct server_watch {
    uv_poll_t poll;
    int pidfd;
    pid_t pid;
    char *events;       /* the file with the counts of its cgroup; NULL: none */
    uint64_t oom_kills; /* the count when the watch began */
    void (*died)(void *data);
    void *data;
};

/* Whether the peer is on this machine. Copies of one virtual machine may have the same PID space,
 * but their addresses differ. */
static bool is_of_this_machine(int fd, const struct wire_hello *hello)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } here, there;
    socklen_t here_bytes = sizeof here, there_bytes = sizeof there;
    if (hello->pid_space == 0 || hello->pid_space != pid_space() || hello->pid > INT32_MAX ||
        getsockname(fd, &here.any, &here_bytes) < 0 ||
        getpeername(fd, &there.any, &there_bytes) < 0) {
        return false;
    }
    return here.any.sa_family == AF_INET6
               ? memcmp(&here.six.sin6_addr, &there.six.sin6_addr, sizeof here.six.sin6_addr) == 0
               : here.any.sa_family == AF_INET &&
                     here.four.sin_addr.s_addr == there.four.sin_addr.s_addr;
}

/* Opens the process of a HELLO. If its number was used again meanwhile, this is a process that
 * lives on: then the death is not seen here, but a wrong death is never seen while it lives. */
static int open_peer(int fd, const struct wire_hello *hello, pid_t *ret_pid)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    *ret_pid = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
    if (*ret_pid <= 0 && is_of_this_machine(fd, hello)) {
        *ret_pid = (pid_t)hello->pid;
    }
    return *ret_pid > 0 ? (int)syscall(SYS_pidfd_open, *ret_pid, 0) : -1;
}

/* ---- Out of memory: the kernel kills by SIGKILL, and counts it in the cgroup ---- */

/* Finds the file of the cgroup's counts. If version 1 has the memory controller, version 2 has no
 * memory limits. */
static char *find_events(pid_t pid)
{
    char path[64], *events = NULL;
    muster_auto(free) char *own = NULL;
    muster_auto(free) char *unified = NULL;
    (void)snprintf(path, sizeof path, "/proc/%ld/cgroup", (long)pid);
    if (file_read(path, CGROUP_BYTES_MAX, &own, NULL, NULL) < 0) {
        return NULL;
    }
    muster_auto(free) char *v1 = cgroup_v1_root(CGROUP_ROOT, own, "memory");
    muster_auto(free) char *group = cgroup_own_path(own, v1 ? "memory" : "");
    const char *tree = v1 ? v1 : cgroup_v2_root(CGROUP_ROOT, &unified);
    if (!group ||
        asprintf(&events, "%s%s/memory.%s", tree, group, v1 ? "oom_control" : "events") < 0) {
        return NULL;
    }
    return events;
}

static uint64_t count_oom_kills(const char *events)
{
    muster_auto(free) char *text = NULL;
    bool read = events && file_read(events, CGROUP_BYTES_MAX, &text, NULL, NULL) == 0;
    const char *line = read ? strstr(text, "oom_kill ") : NULL;
    return line ? strtoull(line + strlen("oom_kill "), NULL, 10) : 0;
}

/* ---- How it ended ---- */

/* The layout of kernel 6.15, which can say how a process ended after its parent has waited for it.
 */
struct exit_info {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t ids[11];
    int32_t status;
    uint32_t more[2];
};
#define EXIT_INFO_STATUS (UINT64_C(1) << 3)
#define EXIT_INFO_ASK _IOWR(0xFF, 11, struct exit_info)

/* Reads the exit code before the parent has waited, or while it does (X). For processes of other
 * users /proc shows zero in that field. */
static bool read_zombie(const struct server_watch *watch, int *ret_status)
{
    char path[64];
    struct stat owner;
    struct process_stat is;
    (void)snprintf(path, sizeof path, "/proc/%ld", (long)watch->pid);
    bool may = stat(path, &owner) == 0 && (owner.st_uid == geteuid() || geteuid() == 0);
    /* the process with this number is still the same one */
    bool ended = may && process_stat_read(watch->pid, &is) &&
                 (is.state == 'Z' || is.state == 'X') &&
                 syscall(SYS_pidfd_send_signal, watch->pidfd, 0, NULL, 0) == 0;
    *ret_status = ended ? is.end : 0;
    return ended && *ret_status != 0; /* 0 may mean that this process must not read the status */
}

static bool read_status(const struct server_watch *watch, int *ret_status)
{
    struct exit_info info = {.mask = EXIT_INFO_STATUS};
    if (read_zombie(watch, ret_status)) {
        return true;
    }
    bool known = ioctl(watch->pidfd, EXIT_INFO_ASK, &info) == 0 && (info.mask & EXIT_INFO_STATUS);
    *ret_status = info.status;
    return known;
}

static bool is_from_outside(int signal)
{
    return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

enum arbiter_cause server_watch_cause(const struct server_watch *watch,
                                      char ret_text[SERVER_WATCH_TEXT_BYTES])
{
    int status = 0;
    *ret_text = 0;
    if (!watch) {
        return ARBITER_CAUSE_UNKNOWN;
    }
    /* first: the parent that has waited for the process removes its cgroup */
    uint64_t oom_kills = count_oom_kills(watch->events);
    if (!read_status(watch, &status)) {
        return ARBITER_CAUSE_PENDING;
    }
    if (WIFSIGNALED(status)) {
        int signal = WTERMSIG(status);
        bool oom = signal == SIGKILL && oom_kills > watch->oom_kills;
        const char *name = sigabbrev_np(signal);
        (void)snprintf(ret_text, SERVER_WATCH_TEXT_BYTES, "by signal %d (%s%s)%s", signal,
                       name ? "SIG" : "", name ? name : "?", oom ? ", out of memory" : "");
        return is_from_outside(signal) && !oom ? ARBITER_CAUSE_OUTSIDE : ARBITER_CAUSE_OWN;
    }
    int code = WEXITSTATUS(status);
    (void)snprintf(ret_text, SERVER_WATCH_TEXT_BYTES, "with exit code %d", code);
    bool told = code > FROM_A_SIGNAL && is_from_outside(code - FROM_A_SIGNAL);
    return code == 0 ? ARBITER_CAUSE_ENDED : told ? ARBITER_CAUSE_OUTSIDE : ARBITER_CAUSE_OWN;
}

/* ---- Watching ---- */

static void on_end(uv_poll_t *poll, int status, int events)
{
    struct server_watch *watch = poll->data;
    (void)events;
    uv_poll_stop(poll);
    if (status == 0) {
        watch->died(watch->data);
    }
}

/* Begins to watch. pidfd: it is closed if there is no memory. */
static struct server_watch *begin(uv_loop_t *loop, int pidfd, pid_t pid, void (*died)(void *data),
                                  void *data)
{
    struct server_watch *watch = pidfd < 0 ? NULL : calloc(1, sizeof *watch);
    if (!watch || uv_poll_init(loop, &watch->poll, pidfd) < 0) {
        free(watch);
        if (pidfd >= 0) {
            close(pidfd);
        }
        return NULL;
    }
    watch->pidfd = pidfd;
    watch->pid = pid;
    watch->events = find_events(pid);
    watch->oom_kills = count_oom_kills(watch->events);
    watch->died = died;
    watch->data = data;
    watch->poll.data = watch;
    (void)uv_poll_start(&watch->poll, UV_READABLE, on_end);
    return watch;
}

struct server_watch *server_watch_start(uv_loop_t *loop, int socket, const struct wire_hello *hello,
                                        void (*died)(void *data), void *data)
{
    pid_t pid = 0;
    int pidfd = open_peer(socket, hello, &pid);
    return begin(loop, pidfd, pid, died, data);
}

/* ---- For a coordinator that begins again ---- */

/* Returns when the process began, in ticks of the kernel; 0: not known. */
static uint64_t began_at(pid_t pid)
{
    struct process_stat is;
    return process_stat_read(pid, &is) ? is.start_ticks : 0;
}

struct server_process server_watch_process(const struct server_watch *watch)
{
    return (struct server_process){
        .space = pid_space(), .pid = (uint32_t)watch->pid, .began = began_at(watch->pid)};
}

struct server_watch *server_watch_resume(uv_loop_t *loop, const struct server_process *process,
                                         void (*died)(void *data), void *data, bool *ret_gone)
{
    pid_t pid = (pid_t)process->pid;
    *ret_gone = false;
    if (process->space == 0 || process->space != pid_space() || pid <= 0) {
        return NULL;
    }
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    *ret_gone = pidfd < 0 && errno == ESRCH;
    uint64_t began = pidfd < 0 ? 0 : began_at(pid);
    if (began != 0 && process->began != 0 && began != process->began) {
        *ret_gone = true; /* another process has its number now */
        close(pidfd);
        return NULL;
    }
    return begin(loop, pidfd, pid, died, data);
}

static void on_closed(uv_handle_t *handle)
{
    struct server_watch *watch = handle->data;
    close(watch->pidfd);
    free(watch->events);
    free(watch);
}

void server_watch_stop(struct server_watch *watch)
{
    if (watch) {
        uv_close((uv_handle_t *)&watch->poll, on_closed);
    }
}
