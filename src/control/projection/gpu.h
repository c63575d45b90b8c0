/* Tells whether a container holds a GPU.
 *
 * Layer: pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Whether the container limits or requests an amount that is not zero. */
bool control_holds_gpu(const json_t *container);
