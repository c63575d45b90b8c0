/* The last steps of a container's main process before exec.
 *
 * Layer: services; private to the monitor. Thread: the new process's only one.
 */
#pragma once

#include "process/monitor/protocol.h"

/* Says hello on control_fd, enters the control groups, changes user, folder and standard streams
 * (input_fd -1: an empty input), and executes. Reports a failure on control_fd, in a kubelet's
 * words (code 127: not found, 126: not executable, 128: any other), and then writes a byte to
 * exec_fd. */
__attribute__((noreturn)) void execute(const struct monitor_plan *plan, int input_fd,
                                       int control_fd, int exec_fd);

/* A further command in a running container: its environment, user and folder are the
 * container's. */
struct execute_inside {
    const struct process_spec *spec;
    const char *mark;
    const char **argv;
    const char *term; /* the kind of its own terminal; NULL: its streams are not a terminal */
    int streams[3];
    const int *entrances;
    int failure_fd; /* gets a struct monitor_message, MONITOR_FAILED, when nothing was executed */
};
__attribute__((noreturn)) void execute_inside(const struct execute_inside *how);
