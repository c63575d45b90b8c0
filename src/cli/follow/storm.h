/* Failures that come again and again: remembers the first one, and tells when to report it.
 *
 * A restarted rank runs into errors of its own (a port that is taken, a peer that is gone), so the
 * last failure is seldom the cause; the first one is kept for as long as the job is followed.
 *
 * Layer: cli; pure. Ownership: init/done.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { STORM_RESTARTS = 3, STORM_TEXT_BYTES = 512, STORM_NAME_BYTES = 256 };

struct storm {
    json_t *remade; /* pod name -> how often it was made again after a failure */
    int64_t first_unix_ms;
    char first[STORM_TEXT_BYTES]; /* "mnist-worker-1 (rank 2) exited with code 3", "": none yet */
    char pod[STORM_NAME_BYTES];   /* of the first failure */
    char container[STORM_NAME_BYTES];
    bool told;
};

void storm_init(struct storm *storm);
void storm_done(struct storm *storm);

/* Takes a pod as it is now; `before` is the pod as it was, or an earlier pod of the same name;
 * NULL: the pod is new. */
void storm_pod(struct storm *storm, const json_t *job, const json_t *before, const json_t *pod);

/* How often the pod was started again, in place or as a new pod. */
int64_t storm_restarts(const struct storm *storm, const json_t *pod);

/* True once: when a pod was started again for the third time. */
bool storm_is_due(struct storm *storm, const json_t *pod);

/* Whether nothing in the job says when to give up. */
bool storm_is_unbounded(const json_t *job);

/* Appends the first failure and the last line that it printed (may be NULL); nothing if there was
 * no failure. */
void storm_print(const struct storm *storm, const char *last_line, struct buf *out);
