/* See frames.h. */
#include "cli/log/frames.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void take_head(struct frames *f, const struct frames_sink *sink)
{
    uint64_t number = 0;
    int64_t time = 0;
    f->head[f->head_used] = '\0';
    f->head_used = 0;
    if (sscanf(f->head, "d %" SCNu64 " %" SCNd64 " %" SCNu64, &f->offset, &f->unix_ms, &f->left) ==
        3) {
        return;
    }
    f->left = 0;
    if (sscanf(f->head, "g %" SCNu64, &number) == 1) {
        sink->gap(sink->context, number);
    } else if (sscanf(f->head, "w %" SCNd64, &time) == 1) {
        sink->watermark(sink->context, time);
    } else {
        f->broken = true;
    }
}

/* Reads up to the newline; returns how many bytes were taken. */
static size_t read_head(struct frames *f, const char *bytes, size_t count,
                        const struct frames_sink *sink)
{
    const char *newline = memchr(bytes, '\n', count);
    size_t length = newline ? (size_t)(newline - bytes) : count;
    if (f->head_used + length >= LOG_FRAME_HEAD_BYTES) {
        f->broken = true;
        return count;
    }
    memcpy(f->head + f->head_used, bytes, length);
    f->head_used += length;
    if (newline) {
        take_head(f, sink);
    }
    return length + (newline != NULL);
}

void frames_feed(struct frames *frames, const char *bytes, size_t count,
                 const struct frames_sink *sink)
{
    assert(sink->data && sink->gap && sink->watermark);
    while (count > 0 && !frames->broken) {
        size_t taken;
        if (frames->left > 0) {
            taken = frames->left < count ? (size_t)frames->left : count;
            sink->data(sink->context, frames->offset, frames->unix_ms, bytes, taken);
            frames->offset += taken;
            frames->left -= taken;
        } else {
            taken = read_head(frames, bytes, count, sink);
        }
        bytes += taken;
        count -= taken;
    }
}
