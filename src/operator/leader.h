/* Takes and renews the Lease (election.h), each second, outside of the budget of requests.
 *
 * Layer: program. Thread: the loop's. Ownership: open/close; the loop must run once more.
 */
#pragma once

#include "controller/cluster.h"

#include <uv.h>

struct leader;

struct leader_options {
    struct cluster *cluster;
    const char *namespace, *name; /* of the Lease; copied */
    void (*led)(void *arg);       /* we lead from now on; once */
    void (*lost)(void *arg);      /* the deadline is over: nothing may be sent any more */
    void *arg;
};

int leader_open(uv_loop_t *loop, const struct leader_options *options, struct leader **ret,
                struct muster_err *err);
/* NULL is fine. */
void leader_close(struct leader *leader);

/* For the cluster's transport, before anything is sent. A NULL leader may. */
bool leader_may_send(struct leader *leader);

bool leader_leads(const struct leader *leader);
/* The API server has said something about the Lease. */
bool leader_has_heard(const struct leader *leader);

/* Gives the Lease up, so that another takes it at once; `done` comes in any case, from the loop. */
void leader_release(struct leader *leader, void (*done)(void *arg));
