/* See inside.h. */
#include "process/monitor/inside.h"

#include "process/monitor/session.h"
#include "process/wire/passing.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { FEED_BYTES = 32 << 10 };

/* fds: the client's socket, the document, then the entrances that were sent. */
static void start_session(struct inside *inside, const struct monitor_request *request,
                          const int *fds, size_t count)
{
    if (count < 2) {
        return;
    }
    if (inside->session_count == INSIDE_SESSIONS_MAX) {
        session_refuse(fds[0], SESSION_NOT_SET_UP, "too many commands run in this rank already");
        return;
    }
    struct session_plan plan = {.spec = inside->plan->spec,
                                .mark = inside->plan->mark,
                                .own_proc = inside->own_proc,
                                .socket_fd = fds[0],
                                .open_fd = fds[1]};
    size_t next = 2;
    for (int kind = 0; kind < CGROUP_KINDS; kind++) {
        plan.entrances[kind] = request->entrance[kind] && next < count ? fds[next++] : -1;
    }
    pid_t pid = _Fork(); /* as in monitor.c */
    if (pid == 0) {
        session_run(&plan);
    }
    if (pid < 0) {
        session_refuse(fds[0], SESSION_NOT_SET_UP, "no more processes can be started");
    } else {
        inside->sessions[inside->session_count++] = pid;
    }
}

/* Copies until the end of the input, or until the reader has closed its end. */
__attribute__((noreturn)) static void feed(int from_fd, int into_fd)
{
    static char bytes[FEED_BYTES];
    const int keep[] = {from_fd, into_fd};
    (void)prctl(PR_SET_NAME, "muster-stdin");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    passing_keep_only(keep, 2);
    for (;;) {
        ssize_t n = recv(from_fd, bytes, sizeof bytes, 0);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            _exit(0);
        }
        for (ssize_t done = 0; done < n;) {
            ssize_t written = write(into_fd, bytes + done, (size_t)(n - done));
            if (written < 0 && errno != EINTR) {
                _exit(0);
            }
            done += written > 0 ? written : 0;
        }
    }
}

static void start_feeder(struct inside *inside, const int *fds, size_t count)
{
    if (count != 1 || inside->input_fd < 0 || inside->feeder > 0) {
        return;
    }
    inside->feeder = _Fork();
    if (inside->feeder == 0) {
        feed(fds[0], inside->input_fd);
    }
}

/* A socket belongs to the network namespace in which it was made, not to that of the process that
 * connects it. */
static void give_network(const int *fds, size_t count)
{
    static const int families[] = {AF_INET, AF_INET6};
    int sockets[PASSING_FDS_MAX];
    size_t made = 0;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        int fd = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0) {
            sockets[made++] = fd;
        }
    }
    if (count == 1 && made > 0) {
        (void)passing_send(fds[0], "\n", 1, sockets, made);
    }
    passing_close(sockets, made);
}

void inside_take(struct inside *inside, const struct monitor_request *request, const int *fds,
                 size_t count)
{
    if (request->number == MONITOR_EXEC) {
        start_session(inside, request, fds, count);
    } else if (request->number == MONITOR_STDIN) {
        start_feeder(inside, fds, count);
    } else if (request->number == MONITOR_NETWORK) {
        give_network(fds, count);
    }
    passing_close(fds, count);
}

void inside_reaped(struct inside *inside, pid_t pid)
{
    if (pid == inside->feeder) {
        passing_close(&inside->input_fd, 1); /* the reader gets the end of the file */
        inside->input_fd = -1;
    }
    for (size_t i = 0; i < inside->session_count; i++) {
        if (inside->sessions[i] == pid) {
            inside->sessions[i] = inside->sessions[--inside->session_count];
            return;
        }
    }
}
