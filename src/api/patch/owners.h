/* Who owns which fields of an object: server-side apply. metadata.managedFields keeps it, as with
 * an API server; here it begins with the first apply, so that what is never applied carries
 * nothing.
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

/* `object` is new, and applied. 0 or MUSTER_ENOMEM. */
int owners_begin(json_t *object, const struct owner *owner);

/* Lays what is `said` over `before` into *ret (a null says nothing): what the manager applied
 * before and does not any more is removed where nobody else owns it. What others own with another
 * value is a conflict: then MUSTER_ECONFLICT, and `problems` has each of the fields; with `force`
 * it changes hands. */
int owners_apply(const json_t *before, const json_t *said, const struct owner *owner, bool force,
                 struct job_problems *problems, json_t **ret, struct muster_err *err);

/* `after` was made of `before` in another way: what it changed is the owner's now, where before
 * says who owns its fields. An object that says of none who owns it gets an empty list. 0 or
 * MUSTER_ENOMEM. */
int owners_update(const json_t *before, json_t *after, const struct owner *owner);
