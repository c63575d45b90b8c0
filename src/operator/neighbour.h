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
    const char *namespace;     /* whose jobs we run; "": of all */
    const char *own_namespace; /* in which we run as a pod; NULL: we do not */
    const char *pod;           /* our pod's name */
    bool serves_webhooks;      /* else those that are left of another overlay are said */
    void (*may_work)(void *arg);
    void (*must_wait)(void *arg); /* after may_work only */
    void *arg;
};

struct neighbour;

/* It looks at once, and again and again. Before the first answer nobody may work. */
int neighbour_open(uv_loop_t *loop, const struct neighbour_options *options, struct neighbour **ret,
                   struct muster_err *err);

/* Another operator works, and this one would. */
bool neighbour_is_waited_for(const struct neighbour *neighbour);

/* The loop must run once more. NULL is fine. The cluster is closed before, so that no answer comes.
 */
void neighbour_close(struct neighbour *neighbour);
