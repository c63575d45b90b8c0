/* Checks whether the values of a JSON body have the types of its kind's fields. An API server
 * refuses a body of other types before it checks anything else.
 *
 * The fields are those of fields.def; a field that is not listed may have any type, and null counts
 * as missing. Layer: services, pure. Source: encoding/json as k8s.io/apimachinery uses it.
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
