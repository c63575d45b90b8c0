/* If several coordinators may be started over one journal, only the one that holds the lease may
 * coordinate. The server asks for it; the caller implements it (src/cli/verb/coordinator_lease.c: a
 * Lease of Kubernetes).
 *
 * The lease may be lost at any moment, so the server checks it before it decides, appends or sends
 * anything. Without the lease nothing is served.
 *
 * Layer: program (coordinator). Thread: the loop's. The struct is the caller's.
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct server_lease;

/* All functions are called by the loop. */
struct server_lease_events {
    void (*held)(void *data);
    void (*lost)(void *data); /* may also be called within is_held */
    void (*say)(void *data, const char *text);
    void *data;
};

struct server_lease_calls {
    int (*open)(struct server_lease *lease, uv_loop_t *loop,
                const struct server_lease_events *events, struct muster_err *err);
    /* Whether the lease is held now, by a clock that continues while this process, or its machine,
     * is stopped. */
    bool (*is_held)(struct server_lease *lease);
    /* Returns a number that rises each time that another coordinator gets the lease: the least term
     * of the holder. */
    uint64_t (*term)(struct server_lease *lease);
    /* Asks for the lease again after `lost`; not called from within `lost`. */
    void (*ask_again)(struct server_lease *lease);
    /* Gives the lease up, so that the next coordinator gets it at once; runs the loop until this is
     * answered, for seconds at most. */
    void (*close)(struct server_lease *lease);
};

struct server_lease {
    const struct server_lease_calls *calls;
};
