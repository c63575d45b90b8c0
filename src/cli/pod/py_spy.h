/* Native frames of Python processes, by py-spy (a program of its own, which may be on PATH).
 *
 * Layer: cli. Blocks: a few seconds for each process at most.
 */
#pragma once

#include <jansson.h>

/* Adds "native", the output of py-spy, to each of the processes (process/stack/stacks.h) that runs
 * Python, or "nativeWhy", the reason why py-spy failed. Does nothing if py-spy is not installed. */
void py_spy_add(json_t *processes);
