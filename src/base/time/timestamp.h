/* Times as the Kubernetes API writes them (RFC 3339, UTC), to and from milliseconds since 1970.
 *
 * Layer: base; pure: the clock is the caller's. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TIMESTAMP_BYTES = 32 };

/* Smaller than any time: stands for a time that is missing or unreadable. */
#define TIMESTAMP_NONE INT64_MIN

/* Whether a time can be printed: years 0 to 9999. A time that was read from a disk may have any
 * value. */
bool timestamp_fits(int64_t unix_ms);

/* Writes "2026-01-02T03:04:05Z", with milliseconds ("…05.678Z") if there are any. Asserts that it
 * fits. */
const char *timestamp_text(int64_t unix_ms, char ret_text[TIMESTAMP_BYTES]);

/* Writes it without the fraction, as Kubernetes does in metadata and conditions. */
const char *timestamp_seconds(int64_t unix_ms, char ret_text[TIMESTAMP_BYTES]);

/* Reads any RFC 3339 time, with offset and fraction; returns TIMESTAMP_NONE for NULL or other
 * text. */
int64_t timestamp_read(const char *text);
