/* See duration.h. */
#include "base/time/duration.h"

#include <errno.h>
#include <muster/err.h>
#include <stdlib.h>
#include <string.h>

/* Reads one "90", "1h" or "250ms" of a duration; *end is the rest. Negative if it is not one. */
static int64_t read_span(const char *text, const char **end)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    char *after;
    errno = 0;
    double number = strtod(text, &after);
    if (after == text || errno || !(number >= 0 && number < 1e9)) {
        return -1;
    }
    *end = after;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t length = strlen(units[i].unit);
        if (strncmp(after, units[i].unit, length) == 0) {
            *end = after + length;
            return (int64_t)(number * (double)units[i].ms);
        }
    }
    return *after ? -1 : (int64_t)(number * 1000);
}

int duration_read(const char *text, int64_t *ret_ms)
{
    int64_t total_ms = 0;
    do {
        int64_t span_ms = read_span(text, &text);
        if (span_ms < 0) {
            return MUSTER_EDATA;
        }
        total_ms += span_ms;
    } while (*text);
    *ret_ms = total_ms;
    return 0;
}
