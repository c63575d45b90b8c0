/* What a job must remember between steps, in its annotations: failures already counted, and how
 * long to wait before a failed replica is made again.
 *
 * Layer: pure. Ownership: `notes` holds one reference.
 */
#pragma once

#include "control/observe.h"

struct control_memory {
    json_t *changed; /* {"key": "text"}: annotations to write; NULL when nothing changed */
    int64_t failures;
    json_t *counted;  /* {"job": uid, "pod uid": failures counted} */
    json_t *restarts; /* {"worker-1": {"uid", "count", "at"}} */
    json_t *fresh;    /* uids of pods that failed since the last step: their events are due */
};

/* Reads the annotations and counts what is new in `o`. MUSTER_ENOMEM. */
int control_remember(const struct control_observed *o, struct control_memory *ret,
                     struct muster_err *err);
void control_memory_done(struct control_memory *memory);

/* When the replica may be made again: 0 for at once. */
int64_t control_not_before(const struct control_memory *memory, enum job_role role, int index);
