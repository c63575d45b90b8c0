/* Two operators must not work on the same jobs: if Kubeflow's training-operator runs (upstream.h),
 * this one waits until it is gone, and steps back if it comes later. This operator reports parts of
 * the other that are left and prevent the creation of jobs, and the kinds that only the other one
 * handles.
 *
 * If the operator has no right to look, or finds nothing, it works: an administrator who binds it
 * to one namespace must make sure that no other operator works there.
 *
 * Layer: program. Thread: the loop's. Ownership: neighbour_open/neighbour_close.
 */
#pragma once

#include "controller/cluster.h"

#include <uv.h>

struct neighbour_options {
    struct cluster *cluster;
    const char *namespace;     /* the namespace whose jobs we run; "": all */
    const char *own_namespace; /* the namespace of our pod; NULL: we are not in a pod */
    const char *pod;           /* our pod's name */
    bool serves_webhooks;      /* false: report webhooks that are left from another overlay */
    void (*may_work)(void *arg);
    void (*must_wait)(void *arg); /* called only after may_work */
    void *arg;
};

struct neighbour;

/* Looks at once, and repeatedly. Before the first answer may_work is not called. */
int neighbour_open(uv_loop_t *loop, const struct neighbour_options *options, struct neighbour **ret,
                   struct muster_err *err);

/* Whether this operator would work, but another operator does. */
bool neighbour_is_waited_for(const struct neighbour *neighbour);

/* The loop must run once more. NULL is allowed. The cluster must be closed before, so that no
 * answer comes. */
void neighbour_close(struct neighbour *neighbour);
