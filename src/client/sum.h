/* Sums within a step, before it is committed: where the model changes several times in a step, each
 * gradient depends on the sum of the one before it. A step that has had one is tried again from its
 * beginning whenever its generation ends.
 *
 * Layer: worker (part of libmuster). Thread: the user's; the job's mutex is held, and let go while
 * something is waited for.
 */
#pragma once

#include "client/worker.h"

/* The arguments of muster_elastic_sum. */
struct sum_call {
    const void *gradients;
    size_t count;
    enum muster_type type;
    void *mean;
};

/* See muster_elastic_sum. */
int sum_take(struct muster_elastic *job, const struct sum_call *call, struct muster_err *err);
