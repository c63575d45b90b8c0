/* What is counted of a job from step to step, in its .status.counters: failures, restarts, and how
 * long to wait before a failed replica is made again.
 *
 * - failures: what backoffLimit counts: no disruption, no pre-emption of elastic Workers.
 * - replicas: {"worker-1": {"uid", "version", "failures", "remakes", "at", "remade": true}}: the
 * pod that was counted last, as it was then, and its failures; how often in a row the replica was
 * made again, when it failed last, and that this pod is counted in that.
 * - completed: {"worker": "0,2-5"}: which have ended well (status/completed.h).
 * - jobRestarts, firstRestart, lastRestart: status/attempt.h.
 * - startTimeMs, completionTimeMs: to the millisecond, where something counts from them.
 *
 * An entry for each replica that has failed, COUNTERS_ENTRIES_MAX at most: past that, further
 * replicas are made again at once, and not counted.
 *
 * Layer: pure. Ownership: control_counters_done frees what control_count made.
 */
#pragma once

#include "control/observe.h"

enum { COUNTERS_ENTRIES_MAX = 8192 };

struct control_counters {
    json_t *doc;  /* all of it, as it is to be */
    bool changed; /* and is not yet */
    int64_t failures;
    json_t *new_failures; /* uids of pods that failed since the last step: their events are due */
};

/* Reads the counters and counts what is new in `o`. MUSTER_ENOMEM. */
int control_count(const struct control_observed *o, struct control_counters *ret,
                  struct muster_err *err);
void control_counters_done(struct control_counters *counters);

/* Takes `value`. MUSTER_ENOMEM. */
int control_counters_set(struct control_counters *counters, const char *field, json_t *value);

/* The same, where it is another value; NULL: without it. */
int control_counters_put(struct control_counters *counters, const char *field, json_t *value);

/* When the replica may be made again: 0 for at once. */
int64_t control_not_before(const struct control_counters *counters, enum job_role role, int index);
