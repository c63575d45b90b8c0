/* See histogram.h. */
#include "base/histogram.h"

#include <assert.h>
#include <stdio.h>

#define MS_PER_S 1e3

void histogram_init(struct histogram *h, const double *limits, size_t limit_count)
{
    assert(limit_count <= HISTOGRAM_LIMITS_MAX);
    *h = (struct histogram){.limits = limits, .limit_count = limit_count};
}

void histogram_add(struct histogram *h, int64_t took_ms)
{
    size_t i = 0;
    took_ms = took_ms > 0 ? took_ms : 0;
    while (i < h->limit_count && (double)took_ms / MS_PER_S > h->limits[i]) {
        i++;
    }
    h->within[i]++;
    h->sum_ms += (uint64_t)took_ms;
}

void histogram_print(const struct histogram *h, const char *name, const char *labels,
                     struct buf *out)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= h->limit_count; i++) {
        char limit[32] = "+Inf";
        if (i < h->limit_count) {
            (void)snprintf(limit, sizeof limit, "%g", h->limits[i]);
        }
        count += h->within[i];
        buf_format(out, "%s_bucket{%s,le=\"%s\"} %llu\n", name, labels, limit,
                   (unsigned long long)count);
    }
    buf_format(out, "%s_sum{%s} %.17g\n%s_count{%s} %llu\n", name, labels,
               (double)h->sum_ms / MS_PER_S, name, labels, (unsigned long long)count);
}
