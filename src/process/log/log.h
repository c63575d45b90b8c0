/* Reads a container's log. No supervisor is needed, and one may write meanwhile.
 *
 *     N.log   the bytes as the container wrote them, standard output and error in their order
 *     N.idx   when they came: (time, offset) pairs, see process/log/format.h
 *
 * A reader gives whole answers in pieces: read until PROCESS_LOG_WAIT (follow only: on_more is
 * called once when there is more) or PROCESS_LOG_END.
 *
 * Layer: services. Thread: the loop's. Ownership: open/close.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct process_log_options {
    const char *folder; /* JOB/containers/<pod>/<container> */
    bool previous;      /* the attempt before the newest */
    bool by_number;     /* the attempt with the number `attempt`, not the newest */
    int attempt;
    bool follow;           /* read until the attempt has ended */
    bool timestamps;       /* put "2026-01-02T03:04:05.678Z " before each line */
    int64_t tail_lines;    /* -1: all */
    int64_t since_unix_ms; /* only lines that began at this time or later; 0: all */
    int64_t limit_bytes;   /* -1: all */
    bool frames;           /* see below; not together with timestamps or limit_bytes */
    bool watermarks;       /* with the frame w */
    bool as_written;       /* without the text that muster has added */
    uint64_t from;         /* how many bytes of the log to leave out, to continue an earlier read */
};

/* With `frames` the answer consists of frames, which tell the offset and the time of each byte:
 *
 *     d OFFSET UNIX_MS COUNT\n   and COUNT bytes of the log, which begin at its OFFSET
 *     g COUNT\n                  COUNT bytes that were asked for are gone: rotated away
 *     w UNIX_MS\n                watermark, with follow: all bytes up to this time were given out
 */
enum { LOG_FRAME_BYTES_MIN = 128, LOG_FRAME_HEAD_BYTES = 80 /* at most, with the NUL */ };

enum process_log_state {
    PROCESS_LOG_MORE, /* read again */
    PROCESS_LOG_WAIT, /* nothing now; on_more will be called */
    PROCESS_LOG_END,
};

struct process_log;

/* MUSTER_ENOENT: the container has not started (or has no such attempt). on_more may be NULL if
 * `follow` is not set. Options are copied. */
int process_log_open(uv_loop_t *loop, const struct process_log_options *options,
                     void (*on_more)(void *data), void *data, struct process_log **ret,
                     struct muster_err *err);

/* Reads up to `room` (at least 64) bytes into `bytes`; *ret_count may be 0 in any state.
 * MUSTER_EIO. */
int process_log_read(struct process_log *log, char *bytes, size_t room, size_t *ret_count,
                     enum process_log_state *ret_state, struct muster_err *err);

/* Run the loop once more before you close it. `log` may be NULL. */
void process_log_close(struct process_log *log);

/* Lists the newest attempts, newest first; returns how many were written to ret (at most max). */
size_t process_log_attempts(const char *folder, int *ret, size_t max);
/* Returns how many bytes of an attempt's log were rotated away: the first ones. */
uint64_t process_log_rotated(const char *folder, int attempt);

/* Returns the paths of an attempt's log files, oldest first: a JSON array of text, new
 * reference. */
json_t *process_log_paths(const char *folder, int attempt);
