/* Reads the framed form of a log (process/log/log.h) as it arrives.
 *
 * Layer: cli; pure. A zeroed reader is ready; it owns nothing.
 */
#pragma once

#include "process/log/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frames {
    char head[LOG_FRAME_HEAD_BYTES];
    size_t head_used;
    uint64_t offset; /* offset of the next byte of the frame */
    int64_t unix_ms;
    uint64_t left; /* bytes of the frame that are still to come */
    bool broken;   /* the log is not framed; nothing more is read */
};

struct frames_sink {
    /* Gets bytes that are at `offset` of the log and arrived at `unix_ms`. */
    void (*data)(void *context, uint64_t offset, int64_t unix_ms, const char *bytes, size_t count);
    void (*gap)(void *context, uint64_t bytes);
    void (*watermark)(void *context, int64_t unix_ms);
    void *context;
};

void frames_feed(struct frames *frames, const char *bytes, size_t count,
                 const struct frames_sink *sink);
