/* Whether a body in JSON has the types that the fields of its kind have. An API server refuses one
 * that has not before it looks at anything else.
 *
 * The fields are those of fields.def; one that is not there may hold anything, and null is no
 * value. Layer: services, pure. Source: encoding/json as k8s.io/apimachinery uses it.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

/* Whether all fields have the right type. If not, ret_fault names the first wrong field and the
 * type that it must have ("spec.ports[0].port: must be a whole number, not text"). Returns true for
 * kinds without a table. */
bool types_fit(const json_t *object, const char *api_version, const char *kind,
               struct buf *ret_fault);
