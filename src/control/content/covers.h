/* Compares a stored object with what was asked for. A server adds defaults, and writes quantities
 * in its own way ("0.5" as "500m"); neither counts as a difference. A list is compared item by
 * item.
 *
 * Layer: pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Whether every field of `part` is in `whole`, with the same value. A NULL `whole` has no
 * fields. */
bool control_covers(const json_t *whole, const json_t *part);
