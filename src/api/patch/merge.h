/* The three kinds of patch of the Kubernetes API, as pure functions on documents.
 *
 * Layer: services, pure. Ownership: inputs are borrowed and stay as they are; *ret is new. Bounded:
 * an operation list has PATCH_OPERATIONS_MAX entries at most.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

enum { PATCH_OPERATIONS_MAX = 10000 };

/* Applies a merge patch, RFC 7386. */
int merge_patch(const json_t *doc, const json_t *patch, json_t **ret, struct muster_err *err);

/* Applies a JSON patch, RFC 6902. With MUSTER_EDATA, the error names the operation that failed. */
int json_patch(const json_t *doc, const json_t *operations, json_t **ret, struct muster_err *err);

/* Applies a strategic merge patch, a format of Kubernetes: lists of objects are merged by their key
 * (containers by name …). It supports $patch, $deleteFromPrimitiveList, $setElementOrder and
 * $retainKeys. */
int strategic_patch(const json_t *doc, const json_t *patch, json_t **ret, struct muster_err *err);
