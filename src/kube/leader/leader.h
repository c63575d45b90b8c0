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
    LEADER_WAITS,    /* another program holds it, which is reported once */
    LEADER_LEADS,    /* we hold it */
    LEADER_GIVES_UP, /* it was given up, or could not be */
};

struct leader_options {
    struct cluster *cluster;
    const char *namespace, *name; /* of the Lease; copied */
    const char *process;          /* makes our name ours alone; NULL: a number that is drawn */
    json_t *owner;                /* ownerReference of a Lease that we hold; NULL: nobody owns it */
    void (*led)(void *arg);       /* we lead from now on; once, and again after each loss */
    void (*lost)(void *arg);      /* the deadline is over: nothing may be sent any more */
    void (*say)(void *arg, enum leader_news news, const char *text);
    void *arg;
};

int leader_open(uv_loop_t *loop, const struct leader_options *options, struct leader **ret,
                struct muster_err *err);
/* NULL is fine. */
void leader_close(struct leader *leader);

/* Asked by the cluster's transport before anything is sent. A NULL leader may send. */
bool leader_may_send(struct leader *leader);

/* Stands for the Lease again after it was lost; not from within `lost`. Where nobody has taken it
 * meanwhile, we hold it as before. */
void leader_stand_again(struct leader *leader);

bool leader_leads(const struct leader *leader);
/* How often the Lease had got another holder when we held it last. */
int64_t leader_changes(const struct leader *leader);
/* The API server has said something about the Lease. */
bool leader_has_heard(const struct leader *leader);

/* Gives the Lease up, so that another takes it at once; `done` comes in any case, from the loop. */
void leader_release(struct leader *leader, void (*done)(void *arg));
