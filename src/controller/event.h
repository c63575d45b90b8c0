/* Makes Event objects (core/v1), which tell what happened to an object. Pure.
 *
 * An event's name is made from its content, so that an equal event is found by its name: then its
 * count and lastTimestamp change, as in client-go's correlator. An event about a job or one of its
 * pods has the job's uid as a label (JOB_LABEL_EVENT).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct event_note {
    const json_t *about;   /* the object: apiVersion, kind, metadata */
    const char *component; /* "pytorchjob-controller", "muster-agent" … */
    bool warning;
    const char *reason;
    const char *message;
    int64_t now_unix_ms;
};

/* Returns the event's name, NULL without memory; the caller frees it. */
char *event_name(const struct event_note *note);
json_t *event_make(const struct event_note *note, const char *name);
/* Returns the merge patch that increases the event's count by one. */
json_t *event_count_again(const json_t *old, int64_t now_unix_ms);
