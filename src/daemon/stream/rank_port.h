/* A connection to a port of a rank, while it is made: in the rank's own network, which may be one
 * of the job's (muster.dev/network), on its loopback.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: it ends with its hook, or with
 * rank_port_cancel.
 */
#pragma once

#include "base/home.h"

#include <jansson.h>
#include <muster/err.h>
#include <uv.h>

struct rank_port;

struct rank_port_hooks {
    void *arg;
    /* Called once, from the loop: with the connection, which then belongs to the hook, or with -1
     * and why there is none. */
    void (*on_done)(void *arg, int fd, const char *why);
};

/* Connects to `port`, as the pod declares it: a Master's may be another one on this machine
 * (MASTER_PORT). MUSTER_EUNAVAIL: the rank's supervisor does not run, or not any more. */
int rank_port_dial(uv_loop_t *loop, const struct home *home, const json_t *pod, int port,
                   const struct rank_port_hooks *hooks, struct rank_port **ret,
                   struct muster_err *err);

/* `dial` may be NULL. */
void rank_port_cancel(struct rank_port *dial);
