/* Times as people read them. Pure: the clock is the caller's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { AGE_BYTES = 32 };

/* Writes "45s", "3m7s", "17m", "5h12m" or "3d", like kubectl's column AGE. Negative:
 * "<invalid>". */
const char *age_text(int64_t ms, char ret[AGE_BYTES]);

/* Writes the age of an RFC 3339 time; "<unknown>" if the text is not a time, "0s" if the time is in
 * the future (from another machine's clock). */
const char *age_since(const char *stamp, int64_t now_unix_ms, char ret[AGE_BYTES]);

/* Writes a duration for a sentence: "0.8 s", "12 s", "2 min 5 s", "1 h 2 min". */
const char *age_words(int64_t ms, char ret[AGE_BYTES]);
