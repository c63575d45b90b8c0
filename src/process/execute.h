/* The last steps of a container's main process before exec.
 *
 * Layer: services; private to the monitor. Thread: the new process's only one.
 */
#pragma once

#include "process/monitor.h"

/* Says hello on control_fd, enters the control groups, changes user, folder and standard streams,
 * and executes. What fails is told on control_fd, as a kubelet words it (code 127: not found, 126:
 * not executable, 128: else), then a byte on exec_fd. */
__attribute__((noreturn)) void execute(const struct monitor_plan *plan, int control_fd,
                                       int exec_fd);
