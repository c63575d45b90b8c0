/* Where no PID namespace is permitted: a small process whose only work is to outlive a killed
 * supervisor and the monitors killed with it, and to end what of the job is left. It finds them by
 * the mark in the environment; a process that has cleared its environment is missed.
 *
 * Layer: services; private to the supervisor.
 */
#pragma once

#include <muster/err.h>
#include <sys/types.h>

struct guard {
    pid_t pid; /* 0: none */
    int lifeline_fd;
};

/* Forks the guard. It holds the job's lock while it works, so that no process is left when the next
 * supervisor starts. */
int guard_start(struct guard *ret, const char *job_folder, int lock_fd, struct muster_err *err);

/* To be called when no process of the job runs any more. */
void guard_stop(struct guard *guard);
