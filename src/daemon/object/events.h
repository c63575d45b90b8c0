/* Event objects (core/v1): what happened to an object, for `describe` and `events`.
 *
 * The same event again raises its count and lastTimestamp instead of making another, as client-go's
 * correlator does; the store bounds how many there are. An event about a job or one of its pods
 * carries the job's uid as a label (JOB_LABEL_EVENT).
 *
 * Layer: program (daemon). One thread.
 */
#pragma once

#include "store/store.h"

#include <stdbool.h>

struct event_note {
    const json_t *about;   /* the object: apiVersion, kind, metadata */
    const char *component; /* "pytorchjob-controller", "muster-agent" … */
    bool warning;
    const char *reason;
    const char *message;
    int64_t now_unix_ms;
};

int event_record(struct store *store, const struct event_note *note, struct muster_err *err);
