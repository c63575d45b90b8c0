/* The last steps of a container's main process before exec.
 *
 * Layer: services; private to the monitor. Thread: the new process's only one.
 */
#pragma once

#include "process/monitor/protocol.h"

/* Says hello on control_fd, enters the control groups, changes user, folder and standard streams
 * (input_fd -1: an empty input), and executes. What fails is told on control_fd, as a kubelet words
 * it (code 127: not found, 126: not executable, 128: else), then a byte on exec_fd. */
__attribute__((noreturn)) void execute(const struct monitor_plan *plan, int input_fd,
                                       int control_fd, int exec_fd);

/* A further command in a container that runs: its environment, user and folder are the container's.
 */
struct execute_inside {
    const struct process_spec *spec;
    const char *mark;
    const char **argv;
    const char
        *term; /* the streams are a terminal of this kind, to be its own; NULL: they are not */
    int streams[3];
    const int *entrances;
    int failure_fd; /* gets a struct monitor_message, MONITOR_FAILED, when nothing was executed */
};
__attribute__((noreturn)) void execute_inside(const struct execute_inside *how);
