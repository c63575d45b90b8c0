/* Times as the Kubernetes API writes them (RFC 3339, UTC), to and from milliseconds since 1970.
 *
 * Layer: base; pure: the clock is the caller's. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { STAMP_BYTES = 32 };

/* Smaller than any time: what is missing or unreadable. */
#define STAMP_NONE INT64_MIN

/* Whether a time can be printed: years 0 to 9999. What is read from a disk may be anything. */
bool stamp_fits(int64_t unix_ms);

/* "2026-01-02T03:04:05Z"; with milliseconds ("…05.678Z") when there are any. Asserts that it fits.
 */
const char *stamp_text(int64_t unix_ms, char ret_text[STAMP_BYTES]);

/* The same without the fraction: what Kubernetes writes in metadata and conditions. */
const char *stamp_seconds(int64_t unix_ms, char ret_text[STAMP_BYTES]);

/* Any RFC 3339 time, offset and fraction included; STAMP_NONE for NULL or anything else. */
int64_t stamp_read(const char *text);
