/* What a running attempt is to do, asked of its monitor: signals, further commands, connections
 * into its network and to its standard input. See attempt.h. */
#include "process/supervisor/attempt_state.h"

#include "process/monitor/session.h"
#include "process/wire/passing.h"

#include <signal.h>

/* Whether the signal was sent before: a controller that takes over does not know what an earlier
 * one has sent. */
static bool was_sent(struct attempt *attempt, int number)
{
    bool unused = false;
    bool *sent = number == SIGINT    ? &attempt->interrupted
                 : number == SIGTERM ? &attempt->terminated
                                     : &unused;
    bool before = *sent;
    *sent = true;
    return before;
}

/* A monitor that is gone is about to be noticed; a stopped one is continued. */
void attempt_signal(struct attempt *attempt, int number)
{
    const struct monitor_request request = {.number = number};
    if (was_sent(attempt, number)) {
        return;
    }
    attempt->killed = attempt->killed || number == SIGKILL;
    (void)passing_send(attempt->control_fd, &request, sizeof request, NULL, 0);
    if (attempt->monitor > 0) {
        (void)kill(attempt->monitor, SIGCONT);
    }
}

void attempt_exec(struct attempt *attempt, int socket_fd, int open_fd)
{
    struct monitor_request request = {.number = MONITOR_EXEC};
    int fds[PASSING_FDS_MAX] = {socket_fd, open_fd};
    int entrances[CGROUP_KINDS];
    struct muster_err err = MUSTER_ERR_INIT;
    size_t count = 2;
    if (attempt_limits_open_exec(attempt, entrances, &err) < 0) {
        session_refuse(socket_fd, SESSION_NOT_SET_UP, err.text);
        return;
    }
    for (int kind = 0; kind < CGROUP_KINDS; kind++) {
        request.entrance[kind] = entrances[kind] >= 0;
        if (entrances[kind] >= 0) {
            fds[count++] = entrances[kind];
        }
    }
    if (passing_send(attempt->control_fd, &request, sizeof request, fds, count) < 0) {
        session_refuse(socket_fd, SESSION_GONE, "the rank has ended");
    }
    passing_close(entrances, CGROUP_KINDS);
}

void attempt_network(struct attempt *attempt, int socket_fd)
{
    const struct monitor_request request = {.number = MONITOR_NETWORK};
    (void)passing_send(attempt->control_fd, &request, sizeof request, &socket_fd, 1);
}

void attempt_stdin(struct attempt *attempt, int socket_fd)
{
    const struct monitor_request request = {.number = MONITOR_STDIN};
    if (attempt->spec.input) {
        (void)passing_send(attempt->control_fd, &request, sizeof request, &socket_fd, 1);
    }
}
