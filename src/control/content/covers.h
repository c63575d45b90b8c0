/* Compares a stored object with what was asked for. A server adds defaults, and writes quantities
 * in its own way ("0.5" as "500m"); neither counts as a difference. A list is compared item by
 * item.
 *
 * Layer: pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Is every field of `part` in `whole`, with the same value? NULL `whole`: it has none. */
bool control_covers(const json_t *whole, const json_t *part);
