/* An exec session: one more command in a container that runs, and the relay between it and its
 * client.
 *
 * It is a process of its own between the container's monitor and the command, in the namespaces of
 * the container. When the client goes (its socket closes) or the command ends, whatever descends
 * from the command is killed. When the container ends its monitor kills the session, and the client
 * sees the socket close without a FRAME_END.
 *
 * What to run is a JSON document in an open file:
 *
 *     {"argv": ["sh"], "stdin": true, "tty": true, "rows": 24, "columns": 80, "term": "xterm"}
 *
 * Environment, user and working directory are the container's. Back-pressure: one frame is held for
 * each side; a side that does not read stops the other.
 *
 * Layer: services; private to the monitor. Thread: the forked process's only one.
 */
#pragma once

#include "process/machine/cgroup.h"
#include "process/wire/spec.h"

#include <stdbool.h>

enum {
    SESSION_OPEN_BYTES_MAX = 4 << 20,
    SESSION_NOT_SET_UP = 128, /* the code of a command that could not be started */
    SESSION_GONE = 137,       /* the code of a command whose container does not run (any more) */
};

struct session_plan {
    const struct process_spec *spec;
    const char *mark;
    bool own_proc;               /* descendants can be found in /proc */
    int socket_fd;               /* the client's socket, for frames (frame.h) */
    int open_fd;                 /* the document */
    int entrances[CGROUP_KINDS]; /* entrances of the control group for exec sessions; -1: none */
};

__attribute__((noreturn)) void session_run(const struct session_plan *plan);

/* Tells the client that no command will run, and why. */
void session_refuse(int socket_fd, int code, const char *why);
