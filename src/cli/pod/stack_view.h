/* Makes the output of `muster stacks` for each rank, from the report of the job's supervisor.
 *
 * Layer: cli; pure. Ownership: new references; the buffer is the caller's.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>

/* Describes one pod: {"rank" or absent, "label", "pod", "phase", "state", "cpuPercent", "where",
 * "processes": […]}; `attempts` are in the form of process/stack/stacks.h. */
json_t *stack_view_rank(const json_t *pod, const json_t *attempts);

/* Prints for people: the collectives that hang (process/stack/collectives.h), then a line for each
 * rank, and below it its processes with their stacks. */
void stack_view_print(const json_t *ranks, const json_t *collectives, struct buf *out);
