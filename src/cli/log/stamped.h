/* Reads a log as a cluster's API gives it: with a time before each line, and from the beginning
 * whenever it is opened again.
 *
 * Layer: cli; pure. A zeroed reader is ready; it owns nothing.
 */
#pragma once

#include "cli/log/frames.h"

enum { STAMPED_TIME_BYTES = 48 };

struct stamped {
    char time[STAMPED_TIME_BYTES]; /* the part of a line's time that has arrived */
    size_t time_used;
    bool in_text;
    int64_t line_ns;   /* of the line being read, since 1970 */
    uint64_t given;    /* bytes of the line that have arrived, its newline included */
    bool whole;        /* the line has its newline */
    int64_t resume_ns; /* everything before this line was handed on already */
    uint64_t resume_given;
    uint64_t skip; /* bytes of this line that were handed on before */
    uint64_t offset;
};

/* Hands text on without its times. */
void stamped_feed(struct stamped *stamped, const char *bytes, size_t count,
                  const struct frames_sink *sink);

/* Prepares for the log to be opened again: text that was handed on already is skipped. */
void stamped_resume(struct stamped *stamped);

/* When the newest line that was handed on was written, since 1970; 0 if there was none. */
int64_t stamped_newest_ms(const struct stamped *stamped);
