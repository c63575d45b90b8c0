/* Times as the Kubernetes API writes them (RFC 3339, UTC), to and from milliseconds since 1970.
 *
 * Layer: base; pure: the clock is the caller's. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TIMESTAMP_BYTES = 32 };

/* Smaller than any time: what is missing or unreadable. */
#define TIMESTAMP_NONE INT64_MIN

/* Whether a time can be printed: years 0 to 9999. A time that is read from a disk may be anything.
 */
bool timestamp_fits(int64_t unix_ms);

/* "2026-01-02T03:04:05Z"; with milliseconds ("…05.678Z") when there are any. Asserts that it fits.
 */
const char *timestamp_text(int64_t unix_ms, char ret_text[TIMESTAMP_BYTES]);

/* The same without the fraction: what Kubernetes writes in metadata and conditions. */
const char *timestamp_seconds(int64_t unix_ms, char ret_text[TIMESTAMP_BYTES]);

/* Any RFC 3339 time, offset and fraction included; TIMESTAMP_NONE for NULL or anything else. */
int64_t timestamp_read(const char *text);
