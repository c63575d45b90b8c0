/* See memory_text.h. */
#include "base/memory_text.h"

#include <stdio.h>

const char *memory_text(int64_t bytes, char ret[MEMORY_TEXT_BYTES])
{
    double mib = (double)bytes / (1 << 20);
    if (mib < 9.95) {
        (void)snprintf(ret, MEMORY_TEXT_BYTES, "%.1f MiB", mib);
    } else if (mib < 9.95 * 1024) {
        (void)snprintf(ret, MEMORY_TEXT_BYTES, "%.0f MiB", mib);
    } else {
        (void)snprintf(ret, MEMORY_TEXT_BYTES, "%.1f GiB", mib / 1024);
    }
    return ret;
}
