/* How long things took, counted in buckets as Prometheus reads them.
 *
 * Layer: base; pure. Ownership: the caller's memory, which needs no end; `limits` is borrowed.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_LIMITS_MAX = 40 };

struct histogram {
    const double *limits; /* in seconds, rising; a time counts at the first limit not below it */
    size_t limit_count;
    uint64_t within[HISTOGRAM_LIMITS_MAX + 1]; /* not cumulative; last: times above all limits */
    uint64_t sum_ms;
};

/* limit_count is at most HISTOGRAM_LIMITS_MAX. */
void histogram_init(struct histogram *histogram, const double *limits, size_t limit_count);
/* A time below zero counts as zero. */
void histogram_add(struct histogram *histogram, int64_t took_ms);
/* Prints the lines of the histogram, without HELP and TYPE. `labels` has no braces:
 * "verb=\"GET\"". */
void histogram_print(const struct histogram *histogram, const char *name, const char *labels,
                     struct buf *out);
