/* Parts of a description that jobs and pods share. Not for others than describe_*.c. */
#pragma once

#include "cli/show/columns.h"

#include <jansson.h>
#include <stdint.h>

void describe_head(struct columns *c, const json_t *object);
/* Prints "Labels:  a=1" and the other entries below each other; long values are cut; "<none>" if
 * there are none. */
void describe_map(struct columns *c, const char *label, const json_t *map, const char *separator);
void describe_events(struct columns *c, const json_t *events, int64_t now_unix_ms);
