/* Lists the ranks of a job that failed or were stopped.
 *
 * Layer: cli; pure. Ownership: new references are returned; the rest is borrowed.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

/* What was seen of pods while they were followed, by uid. */
struct bad_ranks_seen {
    const json_t *stopped; /* were asked to end before they had ended */
    const json_t *late;    /* ended after their job had, and were restarted */
    bool untold;           /* the request to end them failed: what they did since was not seen */
};

/* The state of a rank when its run is over: "Succeeded", "Failed", "Stopped" (it was ended while it
 * ran, or still runs and is about to be ended), "Pending" (it never ran). */
const char *bad_ranks_state(const json_t *job, const json_t *pod,
                            const struct bad_ranks_seen *seen);

/* [{"name", "rank", "state": "Failed" | "Stopped" | "Pending", "exitCode", "container",
 * "message"}], in the order of `pods`: the newest versions of all pods the job had. rank and
 * exitCode may be null, container is the one that failed or "". NULL when out of memory. */
json_t *bad_ranks_list(const json_t *job, const json_t *pods, const struct bad_ranks_seen *seen);

/* Appends "mnist-worker-0 (rank 1)". */
void bad_ranks_name(const json_t *pod, struct buf *out);

/* Appends `before` and the messages of the entries with this state (NULL: any), joined by commas;
 * leaves out the pod `but` (NULL: none). An entry's "lastLine", if it is set, follows its message.
 * Appends nothing if there is no such entry. */
void bad_ranks_say(const json_t *list, const char *state, const char *but, const char *before,
                   struct buf *out);
