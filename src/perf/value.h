/* Elements of any type as numbers, and what reductions make of small ones: for `muster perf` and
 * the conformance suite.
 *
 * Layer: program. Memory: the caller's. Thread: any.
 */
#pragma once

#include <stddef.h>

#include <muster/comm.h>

/* Sets element i; the value is rounded, or cut, to the range of the type. */
void perf_store(enum muster_type type, void *buffer, size_t i, double value);
double perf_load(enum muster_type type, const void *buffer, size_t i);

/* Reduces two numbers; the result is exact if all three are small integers. */
double perf_reduce(enum muster_op op, double a, double b);
/* Returns the final result of a reduction of `size` ranks: divided if it is an average, and rounded
 * to the type. */
double perf_finish(enum muster_type type, enum muster_op op, int size, double value);
