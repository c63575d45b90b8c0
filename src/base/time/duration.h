/* Durations as people write them: "90", "90s", "1h30m", "250ms", "2d".
 *
 * Layer: base; pure. Thread-safe.
 */
#pragma once

#include <stdint.h>

/* A number without a unit is in seconds. Returns MUSTER_EDATA if the text is not a duration. */
int duration_read(const char *text, int64_t *ret_ms);
