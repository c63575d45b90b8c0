/* The three kinds of patch of the Kubernetes API, as pure functions on documents.
 *
 * Layer: services, pure. Ownership: inputs are borrowed and stay as they are; *ret is new. Bounded:
 * an operation list has PATCH_OPERATIONS_MAX entries at most.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

enum { PATCH_OPERATIONS_MAX = 10000 };

/* A merge patch, RFC 7386. */
int merge_patch(const json_t *doc, const json_t *patch, json_t **ret, struct muster_err *err);

/* A JSON patch, RFC 6902. MUSTER_EDATA says which operation cannot be done. */
int json_patch(const json_t *doc, const json_t *operations, json_t **ret, struct muster_err *err);

/* A strategic merge patch, Kubernetes' own: lists of objects are merged by their key (containers by
 * name …), $patch, $deleteFromPrimitiveList, $setElementOrder and $retainKeys are understood. */
int strategic_patch(const json_t *doc, const json_t *patch, json_t **ret, struct muster_err *err);
