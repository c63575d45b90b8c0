/* Takes and renews the Lease (election.h), each second, outside of the budget of requests.
 *
 * Layer: services, room kube/leader. Thread: the loop's. Ownership: open/close; the loop must run
 * once more.
 */
#pragma once

#include "controller/cluster.h"

#include <uv.h>

struct leader;

enum leader_news {
    LEADER_TROUBLE,  /* a request about the Lease has failed; another follows */
    LEADER_WAITS,    /* another program holds it; reported once */
    LEADER_LEADS,    /* this program holds it */
    LEADER_GIVES_UP, /* the Lease was given up, or this failed */
};

struct leader_options {
    struct cluster *cluster;
    const char *namespace, *name; /* of the Lease; copied */
    const char *process;          /* makes our identity unique; NULL: a random number does */
    json_t *owner;                /* ownerReference for the Lease; NULL: it has no owner */
    void (*led)(void *arg);  /* called when this program begins to lead, also after each loss */
    void (*lost)(void *arg); /* the deadline is over: nothing may be sent any more */
    void (*say)(void *arg, enum leader_news news, const char *text);
    void *arg;
};

int leader_open(uv_loop_t *loop, const struct leader_options *options, struct leader **ret,
                struct muster_err *err);
/* NULL is allowed. */
void leader_close(struct leader *leader);

/* Whether the program may send; called by the cluster's transport before anything is sent. A NULL
 * leader may send. */
bool leader_may_send(struct leader *leader);

/* Makes the program a candidate again after the loss; must not be called from within `lost`. If no
 * other program has taken the Lease meanwhile, it leads again. */
void leader_stand_again(struct leader *leader);

bool leader_leads(const struct leader *leader);
/* Returns how often the Lease had changed its holder when we last held it. */
int64_t leader_changes(const struct leader *leader);
/* Whether the API server has answered a request about the Lease. */
bool leader_has_heard(const struct leader *leader);

/* Gives the Lease up, so that another program takes it at once; `done` is called in any case, from
 * the loop. */
void leader_release(struct leader *leader, void (*done)(void *arg));
