/* What a YAML scalar without a tag means.
 *
 * Layer: base; pure. Used by load.c and print.c only.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* Resolves a plain (unquoted) scalar as Kubernetes does: null, booleans and numbers of YAML 1.1,
 * otherwise text. New reference; NULL when out of memory or if the text is not UTF-8. */
json_t *yaml_resolve(const char *text, size_t length);
