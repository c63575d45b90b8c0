/* What a container's monitor has in the container besides its main process: exec sessions, the
 * relay that feeds its standard input, and sockets of its network for others.
 *
 * Layer: services; private to the monitor. Thread: its only one.
 */
#pragma once

#include "process/monitor/protocol.h"

#include <stddef.h>

enum { INSIDE_SESSIONS_MAX = 64 };

struct inside {
    const struct monitor_plan *plan;
    bool own_proc;
    pid_t sessions[INSIDE_SESSIONS_MAX];
    size_t session_count;
    int input_fd; /* the main process's standard input; -1: closed, or not asked for */
    pid_t feeder; /* the process that writes to it; 0: none yet */
};

/* Carries out the request, and takes the descriptors that came with it. */
void inside_take(struct inside *inside, const struct monitor_request *request, const int *fds,
                 size_t count);
/* To be called when a child of the monitor has ended. */
void inside_reaped(struct inside *inside, pid_t pid);
