/* Two operators must not work on the same jobs: where Kubeflow's training-operator runs
 * (upstream.h), this one waits until it is gone, and it steps back where that one comes later. What
 * it left behind so that nothing can create a job, and the kinds that are left to it, are said.
 *
 * Where the operator may not look, or nothing is there, it works: an administrator who binds it to
 * one namespace must see to it that no other operator works there.
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
