/* How objects look to the clients of a group that shows what is stored in another shape: the events
 * of events.k8s.io/v1 are those of the core group under other names of fields.
 *
 * Verbs, columns and the store know only the stored shape. shape_take converts an object that
 * enters, shape_show one that leaves; a Table's cells are made from the stored shape.
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
    /* Checks a new object beyond the checks of its stored form; NULL: no more checks. */
    void (*check)(const json_t *stored, struct job_problems *problems);
};

extern const struct shape shape_stored;
extern const struct shape shape_event;

/* Returns the object as clients see it: a new reference (to the same object, if it is shown as it
 * is stored), or NULL when out of memory. */
json_t *shape_show(const struct shape *shape, json_t *object);
/* Does the same for each object of an array. */
json_t *shape_show_all(const struct shape *shape, json_t *items);

/* Changes the object from the form in which clients wrote it to the stored form. Returns 0 or
 * MUSTER_ENOMEM. */
int shape_take(const struct shape *shape, json_t *object);
/* Does the same for the paths of a field selector. */
int shape_take_paths(const struct shape *shape, struct selector *fields);
