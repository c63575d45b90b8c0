/* Elements of any type as numbers, and what reductions make of small ones: for `muster perf` and
 * the conformance suite.
 *
 * Layer: program. Memory: the caller's. Thread: any.
 */
#pragma once

#include <stddef.h>

#include <muster/comm.h>

/* Element i; the value is rounded, or cut, to what the type has. */
void perf_store(enum muster_type type, void *buffer, size_t i, double value);
double perf_load(enum muster_type type, const void *buffer, size_t i);

/* Reduces two numbers; exact where they and the result are small integers. */
double perf_reduce(enum muster_op op, double a, double b);
/* What the reduction of `size` ranks is in the end: divided where it is an average, and as the type
 * has it. */
double perf_finish(enum muster_type type, enum muster_op op, int size, double value);
