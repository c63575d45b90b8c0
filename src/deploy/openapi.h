/* A type of the tables of src/job as an OpenAPI schema, as a CustomResourceDefinition has it.
 *
 * The schema holds what those tables say: types, required fields, bounds and words. Fields whose
 * inside the tables do not describe (ANY) are kept as they come. Lists of named things are merged
 * by their names, as in a Pod, so that two owners may apply one job.
 *
 * Layer: pure. Ownership: results are new references. Thread: any.
 */
#pragma once

#include "base/build.h"
#include "job/schema.h"

json_t *openapi_type(struct build *b, enum schema_type type);

/* Adds a rule in the Common Expression Language, and the API server's message for an object that
 * breaks it. */
void openapi_rule(struct build *b, json_t *schema, const char *rule, const char *message);

/* Returns {"type": "object"}. */
json_t *openapi_object(void);

/* Returns the schema of a field below one of openapi_type; NULL if there is none. Borrowed. */
json_t *openapi_property(const json_t *schema, const char *name);
