/* The fields of a kind as an OpenAPI schema, for kubectl explain: of PyTorchJobs and of the kinds
 * of the core group that the embedded cluster serves.
 *
 * Layer: pure. Ownership: results are new references. Thread: any.
 */
#pragma once

#include <jansson.h>

/* Returns the schema; NULL: there is none for that kind (or out of memory). */
json_t *kinds_schema(const char *api_version, const char *kind);
