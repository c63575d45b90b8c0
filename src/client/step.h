/* A step as a transaction, on the user's thread: passes are kept, exchanged, summed, and committed
 * together.
 *
 * Layer: worker (part of libmuster). Thread: the user's; the job's mutex is held, and let go while
 * something is waited for.
 */
#pragma once

#include "client/worker.h"

/* The arguments of muster_elastic_step. */
struct step_call {
    const void *gradient;
    size_t count;
    enum muster_type type;
    const void *extra;
    void *mean;
};

/* See muster_elastic_step. */
int step_take(struct muster_elastic *job, const struct step_call *call, struct muster_err *err);
/* See muster_elastic_commit. */
int step_commit(struct muster_elastic *job, const void *extras, struct muster_err *err);
