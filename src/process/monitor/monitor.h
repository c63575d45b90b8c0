/* A container's monitor: a small process between the supervisor and the container, inside the job's
 * PID namespace. It sets up the container's file system, starts it, reaps what descends from it,
 * and when its main process ends kills the rest: a container ends as a whole.
 *
 * Without a PID namespace it also does that when the supervisor dies.
 *
 * Layer: services. Thread: forked from the single-threaded supervisor, never execs; monitor_start
 * returns in the supervisor only.
 */
#pragma once

#include "process/monitor/protocol.h"

#include <sys/types.h>

/* Returns the supervisor's end of the control socket (SOCK_SEQPACKET, with credentials) in *ret_fd:
 * the supervisor reads messages from it, and writes a struct monitor_request to it. */
int monitor_start(const struct monitor_plan *plan, pid_t *ret_pid, int *ret_fd,
                  struct muster_err *err);
