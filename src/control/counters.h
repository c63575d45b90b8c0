/* clang-format off */
/* The counters of a job, kept from step to step in its .status.counters: failures, restarts, and how
 * long to wait before a failed replica is made again.
 *
 *     {"failures": 3,                    what backoffLimit counts: no pre-emption of elastic Workers
 *      "replicas": {"worker-1": {        the pod that was counted last, as it was then:
 *          "uid", "version", "failures",     its own failures
 *          "remakes", "at",                  how often in a row, and when it failed last
 *          "remade": true}},                 it is counted in "remakes"
 *      "jobRestarts", "firstRestart", "lastRestart",     see status/attempt.h
 *      "startTimeMs", "completionTimeMs"}                to the millisecond, for what counts from them
 *
 * Each replica that has failed has an entry, up to COUNTERS_ENTRIES_MAX; further replicas are made
 * again at once, and not counted.
 *
 * Layer: pure. Ownership: control_counters_done frees what control_count made.
 */
/* clang-format on */
#pragma once

#include "control/observe.h"

enum { COUNTERS_ENTRIES_MAX = 8192 };

struct control_counters {
    json_t *doc;  /* all counters, as they will be stored */
    bool changed; /* it differs from what is stored */
    int64_t failures;
    json_t *new_failures; /* uids of pods that failed since the last step: their events are due */
};

/* Reads the counters and counts what is new in `o`. MUSTER_ENOMEM. */
int control_count(const struct control_observed *o, struct control_counters *ret,
                  struct muster_err *err);
void control_counters_done(struct control_counters *counters);

/* Sets the field to `value` (taken). MUSTER_ENOMEM. */
int control_counters_set(struct control_counters *counters, const char *field, json_t *value);

/* Returns when the replica may be created again: 0 for at once. A failure in the future was written
 * by a clock that was ahead: it causes no wait. */
int64_t control_not_before(const struct control_counters *counters, enum job_role role, int index,
                           int64_t now_unix_ms);
