/* A reader's state, shared by read.c (places, waits, plain bytes) and frames.c (frames).
 *
 * Layer: services, private to the log's readers.
 */
#pragma once

#include "process/log/log.h"
#include "process/log/scan.h"

enum { LOG_RAW_BYTES = 64 << 10 };

struct process_log {
    struct process_log_options options;
    char *folder; /* the folder of the attempt */
    struct log_segment segment;
    uint64_t at;            /* position in the stream of the next byte to read from disk */
    struct log_range added; /* used with as_written; empty until it is known */
    bool gap; /* bytes from gap_from on were asked for and are gone; this was not reported yet */
    uint64_t gap_from; /* offset in the stream */
    bool skip_line;    /* skip up to the next newline: the rest of a line whose beginning is gone */
    bool line_start;   /* the next byte given out begins a line */
    int64_t remaining; /* how much of limit_bytes is left; -1: no limit */
    char *raw;
    size_t raw_from, raw_to;
    uv_fs_event_t watch;
    uv_timer_t timer;
    int open_handles;
    bool handles_ready;
    bool waiting;
    void (*on_more)(void *data);
    void *data;
};

/* Puts the bytes in `raw` as frames, as many as there is room for; *used grows. */
void log_put_frames(struct process_log *log, char *bytes, size_t room, size_t *used);
/* Puts the frames that have no bytes: a gap at the log's end, and the watermark, which says that
 * everything up to the time of asking was read. */
void log_put_end(struct process_log *log, bool waits, int64_t asked_unix_ms, char *bytes,
                 size_t room, size_t *used);
