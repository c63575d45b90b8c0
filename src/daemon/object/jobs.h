/* Small queries about stored PyTorchJobs that several parts of the daemon need.
 *
 * Layer: program (daemon).
 */
#pragma once

#include "store/store.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Nothing more comes of it here: Succeeded or Failed is True, or another controller manages it. */
bool jobs_is_finished(const json_t *job);

/* Its activeDeadlineSeconds are over, and it has not succeeded before. */
bool jobs_is_past_deadline(const json_t *job, int64_t now_unix_ms);

/* The reference to the PyTorchJob that controls the object; borrowed, NULL without one. */
const json_t *jobs_owner(const json_t *object);

/* The PyTorchJob that owns the object; a new reference in *ret. NULL and 0: there is none, or it is
 * gone (another may have its name by now). An error: the store cannot tell. */
int jobs_fetch_owner(struct store *store, const json_t *object, json_t **ret,
                     struct muster_err *err);

/* Whose folder under jobs/ a pod runs in: its job's, or, without one, its own. Borrowed. */
const char *jobs_folder_uid(const json_t *pod);

/* The annotation's text, or NULL. Borrowed. */
const char *jobs_annotation(const json_t *job, const char *annotation);

/* A copy of the job with these annotations ({"key": "value"…}; null removes one). New reference,
 * NULL without memory. */
json_t *jobs_annotated(const json_t *job, const json_t *notes);
