/* What a YAML scalar without a tag means.
 *
 * Layer: base; pure. Used by load.c and print.c only.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* A plain (unquoted) scalar as Kubernetes resolves it: null, booleans and numbers of YAML 1.1, else
 * text. New reference; NULL when out of memory or when the text is no UTF-8. */
json_t *yaml_resolve(const char *text, size_t length);
