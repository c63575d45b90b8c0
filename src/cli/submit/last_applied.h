/* The object as it was applied last, by which `apply` removes fields that its file no longer has.
 * kubectl and muster keep it in the same annotation, so that both may be used in turn.
 *
 * Layer: cli; pure. Results are new references or the caller's to free; NULL: out of memory.
 */
#pragma once

#include <jansson.h>

#define LAST_APPLIED_ANNOTATION "kubectl.kubernetes.io/last-applied-configuration"

/* The annotation for an object of a file, byte for byte as kubectl writes it. */
char *last_applied_print(const json_t *object);

/* The merge patch (RFC 7396) that turns `current` into what `wanted` says: the values of `wanted`,
 * and null for what `last` has and `wanted` has not. Lists are whole values. `last` may be NULL. */
json_t *last_applied_patch(const json_t *last, const json_t *current, const json_t *wanted);
