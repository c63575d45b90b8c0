/* See write.h. */
#include "process/log/write.h"

#include "process/log/format.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20, COPY_BYTES = 64 << 10, NAME_BYTES = 32 };

static int create(const struct log_writer *w, unsigned segment, const char *kind)
{
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "%u.%s", segment, kind);
    return openat(w->folder_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static void drop(const struct log_writer *w, unsigned segment)
{
    static const char *const kinds[] = {"idx", "log"};
    for (size_t i = 0; i < 2; i++) {
        char name[NAME_BYTES];
        (void)snprintf(name, sizeof name, "%u.%s", segment, kinds[i]);
        (void)unlinkat(w->folder_fd, name, 0);
    }
}

static void mark(struct log_writer *w, int64_t now_unix_ms)
{
    const struct log_mark m = {now_unix_ms, w->base + w->used};
    off_t at = (off_t)(w->marks * sizeof m);
    if (pwrite(w->index_fd, &m, sizeof m, at) == (ssize_t)sizeof m) {
        w->marks++;
    }
    w->last_mark_unix_ms = now_unix_ms;
}

static void close_segment(struct log_writer *w)
{
    if (w->log_fd >= 0) {
        close(w->log_fd);
    }
    if (w->index_fd >= 0) {
        close(w->index_fd);
    }
    w->log_fd = w->index_fd = -1;
}

/* The index and its first mark are written before the log is created: a reader that sees N.log can
 * tell its offset. */
static bool open_segment(struct log_writer *w, unsigned segment, int64_t now_unix_ms)
{
    w->segment = segment;
    w->base += w->used;
    w->used = w->marks = 0;
    w->index_fd = create(w, segment, "idx");
    if (w->index_fd >= 0) {
        mark(w, now_unix_ms);
    }
    w->log_fd = w->index_fd >= 0 ? create(w, segment, "log") : -1;
    return w->log_fd >= 0;
}

int log_writer_init(struct log_writer *w, const char *folder, int64_t segment_bytes,
                    int64_t segments, int64_t now_unix_ms, struct muster_err *err)
{
    assert(segment_bytes > 0 && segments >= 2);
    *w = (struct log_writer){.log_fd = -1, .index_fd = -1};
    w->segment_bytes_max = (uint64_t)segment_bytes;
    w->segments_max = (unsigned)segments;
    w->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->folder_fd < 0 || !open_segment(w, 0, now_unix_ms)) {
        int code = muster_fail(err, MUSTER_ECREATE, "cannot create a log in %s: %s", folder,
                               strerror(errno));
        log_writer_done(w);
        return code;
    }
    return 0;
}

void log_writer_done(struct log_writer *w)
{
    close_segment(w);
    if (w->folder_fd >= 0) {
        close(w->folder_fd);
    }
    w->folder_fd = -1;
}

/* Whether log or index is full: a container that writes one byte at a time makes a mark for each
 * byte. */
static bool segment_is_full(const struct log_writer *w)
{
    return w->used >= w->segment_bytes_max ||
           w->marks * sizeof(struct log_mark) >= w->segment_bytes_max / 4;
}

static void rotate(struct log_writer *w, int64_t now_unix_ms)
{
    uint64_t end = w->base + w->used;
    close_segment(w);
    (void)open_segment(w, w->segment + 1, now_unix_ms);
    assert(w->base == end && w->used == 0);
    if (w->segment >= w->segments_max) {
        drop(w, w->segment - w->segments_max);
    }
}

/* If the segment could not be made (no descriptor, a full disk), tries again, so that later output
 * is not lost too. */
static void reopen_if_closed(struct log_writer *w, int64_t now_unix_ms)
{
    if (w->log_fd < 0) {
        close_segment(w);
        (void)open_segment(w, w->segment, now_unix_ms);
    }
}

static ssize_t throw_away(struct log_writer *w, int pipe_fd, size_t count)
{
    char bytes[COPY_BYTES];
    ssize_t n = read(pipe_fd, bytes, count < sizeof bytes ? count : sizeof bytes);
    w->lost_bytes += n > 0 ? (uint64_t)n : 0;
    return n;
}

static ssize_t copy(struct log_writer *w, int pipe_fd, size_t count)
{
    char bytes[COPY_BYTES];
    ssize_t n = read(pipe_fd, bytes, count < sizeof bytes ? count : sizeof bytes);
    ssize_t written = n > 0 ? pwrite(w->log_fd, bytes, (size_t)n, (off_t)w->used) : 0;
    if (n > 0) {
        w->used += written > 0 ? (uint64_t)written : 0;
        w->lost_bytes += (uint64_t)(n - (written > 0 ? written : 0));
    }
    return n;
}

static ssize_t move(struct log_writer *w, int pipe_fd, size_t count)
{
    if (w->log_fd < 0) {
        return throw_away(w, pipe_fd, count);
    }
    if (w->no_splice) {
        return copy(w, pipe_fd, count);
    }
    off_t at = (off_t)w->used;
    ssize_t n = splice(pipe_fd, NULL, w->log_fd, &at, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0) {
        w->used += (uint64_t)n;
    }
    if (n < 0 && errno == EINVAL) {
        w->no_splice = true;
        return copy(w, pipe_fd, count);
    }
    return n < 0 && errno != EAGAIN && errno != EINTR ? throw_away(w, pipe_fd, count) : n;
}

enum log_pump log_writer_pump(struct log_writer *w, int pipe_fd, size_t budget, int64_t now_unix_ms)
{
    size_t moved = 0;
    reopen_if_closed(w, now_unix_ms);
    while (moved < budget) {
        if (segment_is_full(w)) {
            rotate(w, now_unix_ms);
        }
        if (w->log_fd >= 0 && now_unix_ms != w->last_mark_unix_ms) {
            mark(w, now_unix_ms);
        }
        assert(w->used < w->segment_bytes_max);
        uint64_t room = w->segment_bytes_max - w->used;
        ssize_t n = move(w, pipe_fd, room < CHUNK_BYTES ? (size_t)room : CHUNK_BYTES);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0 ? LOG_PUMP_CLOSED : LOG_PUMP_EMPTY;
        }
        moved += (size_t)n;
    }
    return LOG_PUMP_MOVED;
}

/* Whether the container may have begun a line. */
static bool in_line(const struct log_writer *w)
{
    char last = '\n';
    return w->used > 0 && pread(w->log_fd, &last, 1, (off_t)w->used - 1) == 1 && last != '\n';
}

static void add(struct log_writer *w, const char *text, size_t bytes)
{
    uint64_t room = w->segment_bytes_max - w->used;
    bytes = bytes < room ? bytes : (size_t)room;
    ssize_t written = pwrite(w->log_fd, text, bytes, (off_t)w->used);
    w->used += written > 0 ? (uint64_t)written : 0;
}

/* Marks added bytes for readers that leave them out. If the mark cannot be written, those readers
 * show them. */
static void mark_added(const struct log_writer *w, uint64_t bytes, int64_t now_unix_ms)
{
    const struct log_mark marks[] = {{now_unix_ms, w->added_at},
                                     {now_unix_ms, w->added_at + bytes}};
    int fd = openat(w->folder_fd, LOG_ADDED, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)!pwrite(fd, marks, sizeof marks, 0);
        close(fd);
    }
}

void log_writer_add(struct log_writer *w, const char *text, size_t bytes, int64_t now_unix_ms)
{
    reopen_if_closed(w, now_unix_ms);
    bool begun = w->log_fd >= 0 && in_line(w);
    if (segment_is_full(w) || bytes + 1 > w->segment_bytes_max - w->used) {
        rotate(w, now_unix_ms);
    }
    if (w->log_fd < 0) {
        return;
    }
    mark(w, now_unix_ms);
    w->added_at = w->base + w->used;
    mark_added(w, bytes + begun, now_unix_ms);
    if (begun) {
        add(w, "\n", 1);
    }
    add(w, text, bytes);
    w->added_bytes = w->base + w->used - w->added_at;
    mark_added(w, w->added_bytes, now_unix_ms);
}
