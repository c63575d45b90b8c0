/* Reads a log as a cluster's API gives it: with a time before each line, and from the beginning
 * whenever it is opened again.
 *
 * Layer: cli; pure. A zeroed reader is ready; it owns nothing.
 */
#pragma once

#include "cli/log/frames.h"

enum { STAMPED_TIME_BYTES = 48 };

struct stamped {
    char time[STAMPED_TIME_BYTES]; /* what there is of it, at the beginning of a line */
    size_t time_used;
    bool in_text;
    int64_t line_ns;   /* of the line being read, since 1970 */
    uint64_t given;    /* bytes of it that came; its end included, it is whole */
    bool whole;        /* it has its end */
    int64_t resume_ns; /* up to this line all was handed on before */
    uint64_t resume_given;
    uint64_t skip; /* bytes of this line that were handed on before */
    uint64_t offset;
};

/* Hands text on without its times. */
void stamped_feed(struct stamped *stamped, const char *bytes, size_t count,
                  const struct frames_sink *sink);

/* The log is opened again: what was handed on already is not handed on once more. */
void stamped_resume(struct stamped *stamped);

/* When the newest line that was handed on was written, since 1970; 0: there was none. */
int64_t stamped_newest_ms(const struct stamped *stamped);
