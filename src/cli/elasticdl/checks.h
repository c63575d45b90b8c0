/* Checks the value of each flag by itself.
 *
 * Layer: cli; pure. Borrows from the arguments.
 */
#pragma once

#include "cli/command/args.h"

struct checked {
    const char *name;
    int64_t workers;
    int64_t each;               /* micro-batches of each worker; 0: a step has `workers` of them */
    int64_t relaunches;         /* of each worker, on the average; 0: none */
    const char *restart_policy; /* of the Workers, as a PyTorchJob spells it */
    const char *worker_class;   /* their PriorityClass; NULL: none */
    int64_t high_workers;       /* number of workers with the class "high" instead */
    int64_t checkpoint_steps;   /* 0: not given */
    int64_t checkpoints;        /* number of checkpoints that are kept; 0: not given */
    int64_t max_steps;          /* the last step of the job; 0: that of the last epoch */
    bool set_aside;             /* whether records that crash workers are set aside */
};

/* MUSTER_EINVAL names the flag that is wrong. */
int checks_read(const struct args *args, struct checked *ret, struct muster_err *err);
