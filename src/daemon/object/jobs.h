/* Small queries about stored PyTorchJobs that several parts of the daemon need.
 *
 * Layer: program (daemon).
 */
#pragma once

#include "store/store.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether the controller has nothing more to do for the job: Succeeded or Failed is True, or
 * another controller manages the job. */
bool jobs_is_finished(const json_t *job);

/* Whether the job has run longer than its activeDeadlineSeconds, and has not succeeded before. */
bool jobs_is_past_deadline(const json_t *job, int64_t now_unix_ms);

/* Returns the reference to the PyTorchJob that controls the object; borrowed, NULL if there is
 * none. */
const json_t *jobs_owner(const json_t *object);

/* Fetches the PyTorchJob that owns the object: a new reference in *ret. If there is none, or it is
 * gone (another job may have its name now), *ret is NULL and the result 0. An error: the store
 * cannot answer. */
int jobs_fetch_owner(struct store *store, const json_t *object, json_t **ret,
                     struct muster_err *err);

/* Returns the uid whose folder under jobs/ a pod runs in: its job's uid or, without a job, its own.
 * Borrowed. */
const char *jobs_folder_uid(const json_t *pod);

/* Returns the annotation's text, or NULL. Borrowed. */
const char *jobs_annotation(const json_t *job, const char *annotation);

/* Returns a copy of the job with these annotations ({"key": "value"…}; null removes one): a new
 * reference, NULL if out of memory. */
json_t *jobs_annotated(const json_t *job, const json_t *notes);
