/* What is known of an attempt, on disk: started.json (made once, before anything runs) and
 * exit.json (whole or not there).
 *
 * Layer: services. Ownership: the caller's structs; documents are new references. Only the job's
 * supervisor writes.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>

enum { RECORD_ID_BYTES_MAX = 640 };

/* Whether the id is "POD/CONTAINER/ATTEMPT", each part a plain file name. */
bool record_id_valid(const char *id);

/* Returns "JOB/containers/ID"; the caller frees. */
char *record_folder(const char *job_folder, const char *id);

/* Makes the attempt's folder, spec.json, and then started.json, which must not exist: MUSTER_EEXIST
 * says that the attempt was started before and must not be started again. */
int record_start(const char *attempt_folder, const json_t *spec, const json_t *started,
                 struct muster_err *err);

/* Adds what is known only later (identity). */
int record_running(const char *attempt_folder, const json_t *started, struct muster_err *err);

int record_exit(const char *attempt_folder, const json_t *exit, struct muster_err *err);

/* Returns a new reference; NULL when the file does not exist or cannot be read. */
json_t *record_read(const char *attempt_folder, const char *name);

/* Calls `each` for every attempt that was started, in any order. Stops at the first negative result
 * and returns it. */
int record_each(const char *job_folder,
                int (*each)(void *data, const char *id, const char *attempt_folder), void *data,
                struct muster_err *err);
