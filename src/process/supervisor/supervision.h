/* What a supervisor does, once it is set up: attempts, controllers, the lease, the end.
 *
 * Layer: services; private to the supervisor. Thread: the loop's.
 */
#pragma once

#include "process/machine/cgroup.h"
#include "process/machine/isolation.h"

#include <muster/err.h>
#include <uv.h>

struct supervision_options {
    const char *job_folder;
    const char *staging;
    const char *runner;   /* identity, or NULL */
    const char *lost_why; /* why attempts of an earlier supervisor were lost; NULL: none was */
    int connection_fd;    /* the connection of a controller, or -1 */
    int lock_fd;
    struct isolation *isolation; /* left shortly before the supervisor ends */
    const struct cgroup_job *cgroups;
};

/* Runs until the job has ended, or a controller sends "leave" while nothing runs. */
int supervision_run(uv_loop_t *loop, const struct supervision_options *options,
                    struct muster_err *err);
