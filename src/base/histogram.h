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
    const double *limits; /* in seconds, rising; a time belongs to the first that it is not above */
    size_t limit_count;
    uint64_t within[HISTOGRAM_LIMITS_MAX + 1]; /* not summed up; after the last limit, the rest */
    uint64_t sum_ms;
};

/* limit_count is HISTOGRAM_LIMITS_MAX at most. */
void histogram_init(struct histogram *histogram, const double *limits, size_t limit_count);
/* A time below zero counts as zero. */
void histogram_add(struct histogram *histogram, int64_t took_ms);
/* Its lines, without HELP and TYPE. `labels` without braces: "verb=\"GET\"". */
void histogram_print(const struct histogram *histogram, const char *name, const char *labels,
                     struct buf *out);
