/* See bytes.h. */
#include "cli/show/bytes.h"

#include <stddef.h>
#include <stdio.h>

const char *bytes_text(uint64_t bytes, char ret[BYTES_TEXT])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double scaled = (double)bytes / 1000;
    size_t unit = 0;
    if (bytes < 1000) {
        (void)snprintf(ret, BYTES_TEXT, "%u byte%s", (unsigned)bytes, bytes == 1 ? "" : "s");
        return ret;
    }
    for (; scaled >= 999.95 && unit + 1 < sizeof units / sizeof units[0]; unit++) {
        scaled /= 1000;
    }
    (void)snprintf(ret, BYTES_TEXT, "%.1f %s", scaled, units[unit]);
    return ret;
}
