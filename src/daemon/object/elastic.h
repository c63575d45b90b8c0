/* The progress of an elastic job: the status that its coordinator has written into the job's folder
 * (docs/coordinator.md, --status-file), as `status.elastic` of the job.
 *
 * It is read when a client asks for the job, and is not in the store. A rank writes the file, so it
 * may contain anything: unknown content is left out, and if nothing remains,
 * `status.elastic.message` says why.
 *
 * Layer: program (daemon). Thread: any.
 */
#pragma once

#include "base/home.h"

#include <jansson.h>

/* The name of the file in the job's folder. */
#define ELASTIC_STATUS_FILE "status.json"
enum { ELASTIC_BYTES_MAX = 64 << 10, ELASTIC_LIST_MAX = 16, ELASTIC_TEXT_MAX = 128 };

/* elastic_failure reads from the job's folder why the coordinator ended the job; "" if it has not
 * said so. */
enum { ELASTIC_WHY_BYTES = 512 };
void elastic_failure(const char *folder, char ret[ELASTIC_WHY_BYTES]);

/* Adds status.elastic to a job that has a coordinator; does nothing to other jobs. */
void elastic_add(const struct home *home, json_t *job);
