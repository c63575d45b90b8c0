/* See log.h. The files are read as one stream; a segment that vanishes under a reader that is too
 * slow makes it go on at the oldest one, at the next whole line. */
#include "process/log/log.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/time/clock.h"
#include "base/time/timestamp.h"
#include "process/log/internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { POLL_MS = 200, ATTEMPTS_MAX = 4096 };

/* ---- Opening ---- */

/* Returns the index in `attempts` (newest first) of the attempt that is asked for; `count` if it is
 * not in the list. */
static size_t find_attempt(const struct process_log_options *o, const int *attempts, size_t count)
{
    size_t at = o->previous ? 1 : 0;
    while (o->by_number && at < count && attempts[at] != o->attempt) {
        at++;
    }
    return at;
}

static int refuse_attempt(const struct process_log_options *o, struct muster_err *err)
{
    if (o->by_number) {
        return muster_fail(err, MUSTER_ENOENT,
                           "the container has no attempt %d: it was not made, or is gone",
                           o->attempt);
    }
    return muster_fail(err, MUSTER_ENOENT,
                       o->previous ? "the container has no previous attempt"
                                   : "the container has not started yet");
}

/* Finds the attempt that is asked for, and sets log->folder to its folder. */
static int choose_attempt(struct process_log *log, struct muster_err *err)
{
    muster_auto(free) int *attempts = calloc(ATTEMPTS_MAX, sizeof *attempts);
    size_t count = attempts ? process_log_attempts(log->options.folder, attempts, ATTEMPTS_MAX) : 0;
    size_t wanted = find_attempt(&log->options, attempts, count);
    if (count <= wanted) {
        return refuse_attempt(&log->options, err);
    }
    if (asprintf(&log->folder, "%s/%d", log->options.folder, attempts[wanted]) < 0) {
        log->folder = NULL;
        return err_no_memory(err);
    }
    return 0;
}

static void learn_added(struct process_log *log)
{
    if (log->options.as_written && log->added.to == 0) {
        log->added = log_added(log->folder);
    }
}

/* If bytes before the oldest kept one are asked for, begins at that one and notes the gap. */
static void begin_after_gap(struct process_log *log)
{
    unsigned first, last;
    struct log_segment oldest;
    if (!log_segments(log->folder, &first, &last) || first == 0 ||
        !log_segment_open(log->folder, first, &oldest)) {
        return;
    }
    if (log->at <= oldest.base && log->options.from < oldest.base) {
        log->gap = true;
        log->gap_from = log->options.from;
        log->skip_line = log->line_start = true;
        log->at = oldest.base;
    }
    log_segment_close(&oldest);
}

static void choose_beginning(struct process_log *log)
{
    const struct process_log_options *o = &log->options;
    log->at = o->from;
    if (o->since_unix_ms > 0) {
        log->at = log_find_since(log->folder, o->since_unix_ms, &log->skip_line);
    }
    if (o->tail_lines >= 0) {
        uint64_t tail = log_find_tail(log->folder, o->tail_lines, log->added);
        log->skip_line = tail > log->at ? false : log->skip_line;
        log->at = tail > log->at ? tail : log->at;
    }
    begin_after_gap(log);
}

static void init_handles(struct process_log *log, uv_loop_t *loop)
{
    uv_fs_event_init(loop, &log->watch);
    uv_timer_init(loop, &log->timer);
    log->watch.data = log->timer.data = log;
    log->open_handles = 2;
    log->handles_ready = true;
}

int process_log_open(uv_loop_t *loop, const struct process_log_options *options,
                     void (*on_more)(void *data), void *data, struct process_log **ret,
                     struct muster_err *err)
{
    struct process_log *log = calloc(1, sizeof *log);
    char *raw = malloc(LOG_RAW_BYTES);
    if (!log || !raw) {
        free(log);
        free(raw);
        return err_no_memory(err);
    }
    *log = (struct process_log){.options = *options,
                                .raw = raw,
                                .line_start = true,
                                .remaining = options->limit_bytes,
                                .on_more = on_more,
                                .data = data,
                                .segment = {.log_fd = -1, .index_fd = -1}};
    int r = choose_attempt(log, err);
    log->options.folder = NULL;
    if (r < 0) {
        process_log_close(log);
        return r;
    }
    learn_added(log);
    choose_beginning(log);
    if (options->follow) {
        init_handles(log, loop);
    }
    *ret = log;
    return 0;
}

/* ---- Closing ---- */

static void free_log(struct process_log *log)
{
    log_segment_close(&log->segment);
    free(log->folder);
    free(log->raw);
    free(log);
}

static void on_closed(uv_handle_t *handle)
{
    struct process_log *log = handle->data;
    if (--log->open_handles == 0) {
        free_log(log);
    }
}

void process_log_close(struct process_log *log)
{
    if (!log) {
        return;
    }
    if (!log->handles_ready) {
        free_log(log);
        return;
    }
    uv_close((uv_handle_t *)&log->watch, on_closed);
    uv_close((uv_handle_t *)&log->timer, on_closed);
}

/* ---- Waiting ---- */

static void tell_more(struct process_log *log)
{
    if (log->waiting) {
        log->waiting = false;
        uv_timer_stop(&log->timer);
        uv_fs_event_stop(&log->watch);
        log->on_more(log->data);
    }
}

static void on_change(uv_fs_event_t *watch, const char *name, int events, int status)
{
    (void)name;
    (void)events;
    (void)status;
    tell_more(watch->data);
}

static void on_timer(uv_timer_t *timer)
{
    tell_more(timer->data);
}

/* The timer replaces a watch that cannot be set up (inotify's limits, network file systems), and
 * catches a change between the last read and the start of the watch. */
static void wait_for_more(struct process_log *log)
{
    log->waiting = true;
    (void)uv_fs_event_start(&log->watch, on_change, log->folder, 0);
    uv_timer_start(&log->timer, on_timer, POLL_MS, 0);
}

/* ---- Reading ---- */

static bool attempt_ended(const struct process_log *log)
{
    muster_auto(free) char *path = file_join(log->folder, "exit.json");
    return path && file_exists(path);
}

/* Opens the segment that holds log->at, or the oldest one if that segment is gone. */
static bool open_segment(struct process_log *log)
{
    unsigned first, last;
    if (!log_segments(log->folder, &first, &last)) {
        return false;
    }
    for (unsigned n = first; n <= last; n++) {
        struct log_segment next;
        struct log_segment s;
        if (!log_segment_open(log->folder, n, &s)) {
            continue;
        }
        if (n < last && log_segment_open(log->folder, n + 1, &next)) {
            bool later = next.base <= log->at;
            log_segment_close(&next);
            if (later) {
                log_segment_close(&s);
                continue;
            }
        }
        if (s.base > log->at) {
            log->gap_from = log->gap ? log->gap_from : log->at;
            log->gap = true;
            log->at = s.base;
            log->skip_line = log->line_start = true;
        }
        log->segment = s;
        return true;
    }
    return false;
}

/* Whether the open segment is finished: the writer completes a segment before it makes the next
 * one. */
static bool next_segment_exists(const struct process_log *log)
{
    unsigned first, last;
    return log_segments(log->folder, &first, &last) && last > log->segment.number;
}

/* Reads bytes from the disk into raw; returns how many, 0 when there are none now, -1 with errno.
 */
static ssize_t fill(struct process_log *log)
{
    for (;;) {
        if (log->segment.log_fd < 0 && !open_segment(log)) {
            return 0;
        }
        bool finished = next_segment_exists(log);
        ssize_t n = pread(log->segment.log_fd, log->raw, LOG_RAW_BYTES,
                          (off_t)(log->at - log->segment.base));
        if (n != 0 || !finished) {
            log->raw_from = 0;
            log->raw_to = n > 0 ? (size_t)n : 0;
            return n;
        }
        log_segment_close(&log->segment);
    }
}

/* Skips the rest of a line. If the line fills the whole buffer, the rest is shown all the same: a
 * log may be one long line (a progress bar that only sends carriage returns), and nothing of it
 * would be left. */
static void skip_rest_of_line(struct process_log *log)
{
    size_t have = log->raw_to - log->raw_from;
    const char *newline = memchr(log->raw + log->raw_from, '\n', have);
    if (!newline && have == LOG_RAW_BYTES) {
        log->skip_line = false;
        return;
    }
    size_t skipped = newline ? (size_t)(newline - log->raw) + 1 - log->raw_from : have;
    log->raw_from += skipped;
    log->at += skipped;
    log->skip_line = newline == NULL;
}

/* The prefix is written whole or not at all. */
static bool put_stamp(struct process_log *log, char *bytes, size_t room, size_t *used)
{
    char stamp[TIMESTAMP_BYTES];
    (void)timestamp_text(log_segment_time(&log->segment, log->at), stamp);
    size_t length = strlen(stamp);
    if (room - *used < length + 1) {
        return false;
    }
    memcpy(bytes + *used, stamp, length);
    bytes[*used + length] = ' ';
    *used += length + 1;
    return true;
}

/* Puts one piece of raw: a line, the beginning of a line, or (without timestamps) all bytes.
 * Returns false when there is no room left. */
static bool put_piece(struct process_log *log, char *bytes, size_t room, size_t *used)
{
    if (log->options.timestamps && log->line_start && !put_stamp(log, bytes, room, used)) {
        return false;
    }
    const char *from = log->raw + log->raw_from;
    size_t have = log->raw_to - log->raw_from;
    const char *newline = log->options.timestamps ? memchr(from, '\n', have) : NULL;
    size_t count = newline ? (size_t)(newline - from) + 1 : have;
    count = count < room - *used ? count : room - *used;
    memcpy(bytes + *used, from, count);
    *used += count;
    log->raw_from += count;
    log->at += count;
    log->line_start = count > 0 ? from[count - 1] == '\n' : false;
    return *used < room;
}

/* The added range is read after the bytes: the writer marks added bytes before it writes them. */
static void leave_out_added(struct process_log *log)
{
    learn_added(log);
    uint64_t end = log->at + log->raw_to;
    if (log->at < log->added.from) {
        log->raw_to = end <= log->added.from ? log->raw_to : (size_t)(log->added.from - log->at);
    } else if (log->at < log->added.to) {
        uint64_t to = end < log->added.to ? end : log->added.to;
        log->raw_from = (size_t)(to - log->at);
        log->at = to;
    }
}

static void put_all(struct process_log *log, char *bytes, size_t room, size_t *used)
{
    if (log->skip_line) {
        skip_rest_of_line(log);
    }
    if (log->options.frames) {
        log_put_frames(log, bytes, room, used);
        return;
    }
    while (log->raw_from < log->raw_to && put_piece(log, bytes, room, used)) {
    }
}

static size_t apply_limit(struct process_log *log, size_t count)
{
    if (log->remaining < 0) {
        return count;
    }
    size_t allowed = (uint64_t)log->remaining < count ? (size_t)log->remaining : count;
    log->remaining -= (int64_t)allowed;
    return allowed;
}

int process_log_read(struct process_log *log, char *bytes, size_t room, size_t *ret_count,
                     enum process_log_state *ret_state, struct muster_err *err)
{
    assert(room >= 64 && (!log->options.frames || room >= LOG_FRAME_BYTES_MIN));
    size_t used = 0;
    int64_t asked_unix_ms = clock_unix_ms();
    bool over = log->remaining == 0;
    bool ended = over || !log->options.follow || attempt_ended(log);
    bool empty = false;
    if (!over && log->raw_from == log->raw_to) {
        ssize_t n = fill(log);
        if (n < 0) {
            return muster_fail(err, MUSTER_EIO, "cannot read the log in %s: %s", log->folder,
                               strerror(errno));
        }
        empty = n == 0;
        leave_out_added(log);
    }
    put_all(log, bytes, room, &used);
    if (empty && log->options.frames) {
        log_put_end(log, !ended, asked_unix_ms, bytes, room, &used);
    }
    *ret_count = apply_limit(log, used);
    *ret_state = PROCESS_LOG_MORE;
    if (over || log->remaining == 0 || (empty && ended)) {
        *ret_state = PROCESS_LOG_END;
    } else if (empty) {
        *ret_state = PROCESS_LOG_WAIT;
        wait_for_more(log);
    }
    return 0;
}
