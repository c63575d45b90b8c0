/* Checks the options of a request: there is one check for each kind of options, and it runs before
 * the verb.
 *
 * A check returns 0, or MUSTER_EDATA with call->refusal and the problems, or MUSTER_EINVAL. It
 * reads what verbs need: call->dry_run, call->fields, and for a deletion call->body.
 *
 * Layer: services.
 */
#pragma once

#include "api/internal.h"

/* The media type of server-side apply. */
#define APPLY_TYPE "application/apply-patch+yaml"

int options_create(struct api_call *call, struct muster_err *err);
int options_update(struct api_call *call, struct muster_err *err);
int options_patch(struct api_call *call, struct muster_err *err);
int options_list(struct api_call *call, struct muster_err *err);
/* Leaves DeleteOptions in call->body; they come from the query if the request has no body. */
int options_delete(struct api_call *call, struct muster_err *err);
int options_delete_all(struct api_call *call, struct muster_err *err);

/* Reads ?resourceVersion=; *ret is unchanged if the query has none. */
int options_version(struct api_call *call, int64_t *ret, struct muster_err *err);
/* Checks that the store is at least at that version. If not, fails with a Timeout, like an API
 * server that has waited in vain. */
int options_not_older(struct api_call *call, int64_t version, struct muster_err *err);
