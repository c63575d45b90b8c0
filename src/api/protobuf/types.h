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

/* False: ret_fault says of the first field that has another type where it is and what it must be
 * ("spec.ports[0].port: must be a whole number, not text"). True, too, for kinds without a table.
 */
bool types_fit(const json_t *object, const char *api_version, const char *kind,
               struct buf *ret_fault);
