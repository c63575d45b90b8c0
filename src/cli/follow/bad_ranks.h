/* Lists the ranks of a job that failed or were stopped.
 *
 * Layer: cli; pure. Ownership: new references are returned; the rest is borrowed.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

/* What was seen of pods while they were followed: uids. */
struct bad_ranks_seen {
    const json_t *stopped; /* asked to end while they had not ended */
    const json_t *late;    /* ended after their job had, and were restarted */
    bool untold;           /* nobody could be told to end them: how they end was not seen */
};

/* How a rank stands when its run is over: "Succeeded", "Failed", "Stopped" (it was ended while it
 * ran, or still runs and is about to be), "Pending" (it never ran). */
const char *bad_ranks_state(const json_t *job, const json_t *pod,
                            const struct bad_ranks_seen *seen);

/* [{"name", "rank", "state": "Failed" | "Stopped" | "Pending", "exitCode", "container",
 * "message"}], in the order of `pods`: the newest versions of all pods the job had. rank and
 * exitCode may be null, container is the one that failed or "". NULL when out of memory. */
json_t *bad_ranks_list(const json_t *job, const json_t *pods, const struct bad_ranks_seen *seen);

/* "mnist-worker-0 (rank 1)" */
void bad_ranks_name(const json_t *pod, struct buf *out);

/* The messages of those of a state (NULL: any), joined by commas, after `before`; the pod `but` is
 * left out (NULL: none). An entry's "lastLine", if somebody has set it, follows its message.
 * Nothing when there is none. */
void bad_ranks_say(const json_t *list, const char *state, const char *but, const char *before,
                   struct buf *out);
