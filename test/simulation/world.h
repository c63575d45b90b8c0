/* One job, its store, its node and its controller, under a clock that jumps from event to event.
 *
 * Tests only. Ownership: sim_world_init/sim_world_done.
 */
#pragma once

#include "kubelet.h"
#include "store.h"

struct sim_world {
    struct sim_store store;
    struct sim_kubelet kubelet;
    int64_t start_unix_ms;
    int64_t now_unix_ms;
    int64_t control_wake_unix_ms;
    int64_t seen_version; /* the store's version when the controller last had nothing to do */
    const char *broken;   /* the first invariant that was violated */
};

void sim_world_init(struct sim_world *world, json_t *job, const json_t *script);
void sim_world_done(struct sim_world *world);

/* Runs one step of the controller on `view`; the effects from number `stop` on are lost (as in a
 * crash). Returns how many were not lost. */
size_t sim_world_reconcile(struct sim_world *world, struct sim_view *view, size_t stop);

/* Lets controller and node work until nothing is due at this instant. */
void sim_world_settle(struct sim_world *world);

/* Moves the clock to the next instant at which something is due, at most to `until`. Returns false
 * if nothing is due before. */
bool sim_world_advance(struct sim_world *world, int64_t until_unix_ms);

/* Returns the type of the last condition, "Succeeded", "Failed", "Suspended", …; "gone" for a
 * deleted job. */
const char *sim_world_state(const struct sim_world *world);
bool sim_world_job_is(const struct sim_world *world, const char *condition);
