/* The framed form of a log, see log.h: for clients that merge logs by time, go on after a break, or
 * tell what was rotated away. */
#include "process/log/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WRITER_LATE_MS = 50 /* a byte is in the file at most this long after its time */ };

static bool put_text(char *bytes, size_t room, size_t *used, const char *text, int length)
{
    if (room - *used < (size_t)length) {
        return false;
    }
    memcpy(bytes + *used, text, (size_t)length);
    *used += (size_t)length;
    return true;
}

/* Puts the frame of the gap, which includes the skipped rest of a line after it. */
static bool put_gap(struct process_log *log, char *bytes, size_t room, size_t *used)
{
    char head[LOG_FRAME_HEAD_BYTES];
    int length = snprintf(head, sizeof head, "g %" PRIu64 "\n", log->at - log->gap_from);
    log->gap = !put_text(bytes, room, used, head, length);
    return !log->gap;
}

/* Puts bytes that came at the same time, as many as there is room for. */
static bool put_run(struct process_log *log, char *bytes, size_t room, size_t *used)
{
    char head[LOG_FRAME_HEAD_BYTES];
    uint64_t end = 0;
    int64_t unix_ms = log_segment_run(&log->segment, log->at, &end);
    size_t have = log->raw_to - log->raw_from;
    size_t count = end - log->at < have ? (size_t)(end - log->at) : have;
    size_t space = room - *used;
    if (space <= LOG_FRAME_HEAD_BYTES) {
        return false;
    }
    count = count < space - LOG_FRAME_HEAD_BYTES ? count : space - LOG_FRAME_HEAD_BYTES;
    int length =
        snprintf(head, sizeof head, "d %" PRIu64 " %" PRId64 " %zu\n", log->at, unix_ms, count);
    (void)put_text(bytes, room, used, head, length);
    memcpy(bytes + *used, log->raw + log->raw_from, count);
    *used += count;
    log->raw_from += count;
    log->at += count;
    return true;
}

void log_put_frames(struct process_log *log, char *bytes, size_t room, size_t *used)
{
    if (log->skip_line ||
        (log->gap && log->raw_from < log->raw_to && !put_gap(log, bytes, room, used))) {
        return;
    }
    while (log->raw_from < log->raw_to && put_run(log, bytes, room, used)) {
    }
}

void log_put_end(struct process_log *log, bool waits, int64_t asked_unix_ms, char *bytes,
                 size_t room, size_t *used)
{
    char head[LOG_FRAME_HEAD_BYTES];
    if (log->gap && !waits) {
        (void)put_gap(log, bytes, room, used);
    }
    if (waits && log->options.watermarks) {
        int length = snprintf(head, sizeof head, "w %" PRId64 "\n", asked_unix_ms - WRITER_LATE_MS);
        (void)put_text(bytes, room, used, head, length);
    }
}
