/* What is counted of a job from step to step, in its annotations: failures, restarts, and how long
 * to wait before a failed replica is made again.
 *
 * Layer: pure. Ownership: control_counters_done frees what control_count made.
 */
#pragma once

#include "control/observe.h"

struct control_counters {
    json_t *changed; /* {"key": "text"}: annotations to write; NULL when nothing changed */
    int64_t failures;
    json_t *counted;      /* {"job": uid, "pod uid": failures counted} */
    json_t *restarts;     /* {"worker-1": {"uid", "count", "at"}} */
    json_t *new_failures; /* uids of pods that failed since the last step: their events are due */
};

/* Reads the annotations and counts what is new in `o`. MUSTER_ENOMEM. */
int control_count(const struct control_observed *o, struct control_counters *ret,
                  struct muster_err *err);
void control_counters_done(struct control_counters *counters);

/* When the replica may be made again: 0 for at once. */
int64_t control_not_before(const struct control_counters *counters, enum job_role role, int index);
