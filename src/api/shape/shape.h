/* How objects look to the clients of a group that shows what is stored in another shape: the events
 * of events.k8s.io/v1 are those of the core group under other names of fields.
 *
 * Verbs, columns and the store know the stored shape alone. shape_take is where an object enters,
 * shape_show where one leaves; a Table's cells are made of what is stored.
 *
 * Layer: services, pure. Source: the conversions of k8s.io/kubernetes pkg/apis/events/v1.
 */
#pragma once

#include "job/problem.h"
#include "store/selector.h"

#include <jansson.h>

struct shape {
    const char *shown_version;
    const char *stored_version; /* apiVersions; NULL: it is shown as it is stored */
    /* Fields of the object; ends with NULLs. */
    struct shape_field {
        const char *shown, *stored;
    } fields[8];
    /* What is asked of a new object beside what its stored shape asks; NULL: nothing. */
    void (*check)(const json_t *stored, struct job_problems *problems);
};

extern const struct shape shape_stored;
extern const struct shape shape_event;

/* The object as clients see it: a new reference (to the same one, where that is how
 * it is stored), or NULL when out of memory. */
json_t *shape_show(const struct shape *shape, json_t *object);
/* An array of them. */
json_t *shape_show_all(const struct shape *shape, json_t *items);

/* Makes the object as clients wrote it one to be stored. 0 or MUSTER_ENOMEM. */
int shape_take(const struct shape *shape, json_t *object);
/* The same for the paths of a field selector. */
int shape_take_paths(const struct shape *shape, struct selector *fields);
