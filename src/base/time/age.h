/* Times as people read them. Pure: the clock is the caller's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { AGE_BYTES = 32 };

/* "45s", "3m7s", "17m", "5h12m", "3d": as kubectl's AGE column. Negative: "<invalid>". */
const char *age_text(int64_t ms, char ret[AGE_BYTES]);

/* The age of an RFC 3339 time; "<unknown>" when it is none, "0s" when it is to come
 * (another machine's clock). */
const char *age_since(const char *stamp, int64_t now_unix_ms, char ret[AGE_BYTES]);

/* "0.8 s", "12 s", "2 min 5 s", "1 h 2 min": a duration in a sentence. */
const char *age_words(int64_t ms, char ret[AGE_BYTES]);
