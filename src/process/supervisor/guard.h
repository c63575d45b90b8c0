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

/* Forks it. It holds the job's lock meanwhile, so that the next supervisor finds nothing running.
 */
int guard_start(struct guard *ret, const char *job_folder, int lock_fd, struct muster_err *err);

/* Nothing of the job runs any more. */
void guard_stop(struct guard *guard);
