/* The owners of an object's fields, for server-side apply. metadata.managedFields lists them, as
 * with an API server; here the list begins with the first apply, so that an object that is never
 * applied has none.
 *
 * Layer: services, pure: time comes in. Ownership: results are new references; inputs that are
 * const stay as they are. Source: sigs.k8s.io/structured-merge-diff, k8s.io/apimachinery
 * managedfields.
 */
#pragma once

#include "job/problem.h"

#include <jansson.h>
#include <muster/err.h>

struct owner {
    const char *manager;
    const char *operation;   /* "Apply" or "Update" */
    const char *subresource; /* "": none */
    const char *api_version;
    const char *now; /* RFC 3339 */
};

/* Makes the owner the owner of all fields of `object`, which is new and applied. Returns 0 or
 * MUSTER_ENOMEM. */
int owners_begin(json_t *object, const struct owner *owner);

/* Lays `said` over `before` into *ret (a null says nothing). A field that the manager applied
 * before and does not apply any more is removed if no other manager owns it. A field that another
 * manager owns with another value is a conflict: the result is MUSTER_ECONFLICT, and `problems` has
 * each such field. With `force`, the field changes its owner. */
int owners_apply(const json_t *before, const json_t *said, const struct owner *owner, bool force,
                 struct job_problems *problems, json_t **ret, struct muster_err *err);

/* Records an update: `after` was made from `before` without apply. The owner owns what changed, if
 * `before` records owners of its fields. An object that names no owner gets an empty list. Returns
 * 0 or MUSTER_ENOMEM. */
int owners_update(const json_t *before, json_t *after, const struct owner *owner);
